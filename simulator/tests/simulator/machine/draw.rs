//! Draws the next operation: likely ones often, with amounts, depths and times at their bounds.

use proptest::{option, prelude::*, sample::select, strategy::Union};
use proptest_state_machine::ReferenceStateMachine;
use reference_core::{asset::Currency, mode::Mode, time::Span};
use simulator::{
    model::{ChargeTransfer, DeliveryState, HOLD_MAX, InvoiceStatus, LOCK, List, Pricing},
    record::BookId,
};

use super::{
    op::{Answer, By, Name, Op, Reader},
    sightings::{fill, late, pay, sight, txid},
    state::{BOOKS, COINS, CURRENCIES, State, first_rate},
};

/// The state machine for proptest.
pub(super) struct Machine;

impl ReferenceStateMachine for Machine {
    type State = State;
    type Transition = Op;

    fn init_state() -> BoxedStrategy<State> {
        Just(State::new()).boxed()
    }

    fn transitions(state: &State) -> BoxedStrategy<Op> {
        Union::new_weighted(choices(state)).boxed()
    }

    fn apply(mut state: State, op: &Op) -> State {
        state.apply(op);
        state
    }

    fn preconditions(state: &State, op: &Op) -> bool {
        state.allows(op)
    }
}

pub(super) type Choice = (u32, BoxedStrategy<Op>);

/// Most worlds stay small, so that operations affect the same objects.
const OF_A_KIND_MAX: usize = 6;

fn choices(state: &State) -> Vec<Choice> {
    let mut deliveries = BOOKS.iter().flat_map(|id| &state.book(*id).deliveries);
    let is_due =
        deliveries.any(|delivery| matches!(delivery.state, DeliveryState::Waiting(at) if at <= state.now));
    let mut all = vec![
        (3, wait().prop_map(Op::Wait).boxed()),
        (1, wait().prop_map(Op::Oversleep).boxed()),
        (2, rate()),
        (1, bounds()),
        (3, blocks()),
        (1, Just(Op::Restart).boxed()),
        (1, book().prop_map(Op::NewKey).boxed()),
        (3, turn(state)),
        (3, number(state)),
        (1, Just(Op::Take).boxed()),
        (if is_due { 6 } else { 1 }, answer().prop_map(Op::Post).boxed()),
        (if is_due { 4 } else { 1 }, answer().prop_map(Op::PostAll).boxed()),
        (1, answer().prop_map(Op::Exhaust).boxed()),
    ];
    let names = |kind: char| state.homes.keys().copied().filter(|name| name.0 == kind).collect::<Vec<_>>();
    let next = |kind: char| Name(kind, state.names);
    let (charges, invoices, links, hooks) = (names('c'), names('i'), names('l'), names('h'));
    if charges.len() < 2 * OF_A_KIND_MAX {
        all.push((6, open(next('c'), links.clone())));
    }
    if invoices.len() < OF_A_KIND_MAX {
        all.push((3, issue(next('i'))));
    }
    if links.len() < OF_A_KIND_MAX {
        all.push((2, link(next('l'))));
    }
    if hooks.len() < OF_A_KIND_MAX {
        all.push((if hooks.is_empty() { 5 } else { 2 }, hook(next('h'))));
    }
    if !charges.is_empty() {
        all.extend(about_charges(state, &charges));
    }
    if !invoices.is_empty() {
        all.extend(about_invoices(state, invoices));
    }
    if !links.is_empty() {
        all.extend(about_links(state, links));
    }
    if !hooks.is_empty() {
        all.push((4, at_hook(hooks)));
    }
    all.extend(BOOKS.into_iter().flat_map(|id| about_deliveries(state, id)));
    if !state.keyed.is_empty() {
        all.push((4, again(state)));
    }
    all
}

fn about_charges(state: &State, charges: &[Name]) -> Vec<Choice> {
    let some = charges.iter().map(|name| (*name, state.home(*name).0)).collect::<Vec<_>>();
    // Mostly around the end of the lock, otherwise around that of a hold.
    let hold = i64::try_from(HOLD_MAX.0).expect("a day");
    let offs = vec![-1, 0, 1, -1, 0, 1, hold - 1, hold, hold + 1];
    let end = (select(charges.to_vec()), select(offs));
    let mut all = vec![
        (12, sight(state, charges)),
        (4, end.prop_map(|(of, off)| Op::LockEnd { of, off }).boxed()),
        (2, cancel(some)),
        (3, accept(state, charges)),
    ];
    all.extend(late(state, charges));
    all.extend(pay(state, charges).into_iter().map(|op| (4, op)));
    all.push((3, refund(state, charges)));
    all.extend(fill(state, charges).into_iter().map(|op| (8, op)));
    all
}

fn about_invoices(state: &State, invoices: Vec<Name>) -> Vec<Choice> {
    let some = invoices.iter().map(|name| (*name, state.home(*name).0)).collect::<Vec<_>>();
    let (name, coins) = (Name('c', state.names), select(&COINS[..]));
    let is_open = |name: &Name| {
        let (id, no) = state.home(*name);
        state.book(id).invoices[no].status == InvoiceStatus::Open
    };
    let open: Vec<Name> = invoices.iter().copied().filter(is_open).collect();
    let invoice = select(invoices);
    let chosen = if open.is_empty() { invoice.clone() } else { select(open) };
    let choose = (chosen, coins).prop_map(move |(invoice, asset)| Op::Choose { name, invoice, asset });
    vec![
        (2, by(some.clone()).prop_map(|(invoice, by)| Op::Send { by, invoice }).boxed()),
        (2, by(some).prop_map(|(invoice, by)| Op::Void { by, invoice }).boxed()),
        (2, invoice.prop_map(|invoice| Op::View { invoice }).boxed()),
        (5, choose.boxed()),
    ]
}

fn about_links(state: &State, links: Vec<Name>) -> Vec<Choice> {
    let (name, limited) = (Name('c', state.names), limited(state, &links));
    let link = select(links);
    let pay = (link.clone(), select(&COINS[..]), option::of(select(&PRICES[..])), answers());
    let limit = (book(), link.clone(), option::of(1_u32..3));
    let archive = (book(), link.clone(), any::<bool>());
    let mut all = vec![
        (
            2,
            pay.prop_map(move |(link, asset, cents, answers)| Op::PayLink {
                name,
                link,
                asset,
                cents,
                answers,
            })
            .boxed(),
        ),
        (1, link.prop_map(|link| Op::ViewLink { link }).boxed()),
        (1, limit.prop_map(|(who, link, max)| Op::Limit { who, link, max }).boxed()),
        (1, archive.prop_map(|(who, link, on)| Op::Archive { who, link, on }).boxed()),
    ];
    if !limited.is_empty() {
        all.push((6, select(limited).boxed()));
    }
    all
}

/// Returns valid orders for links with a maximum number of payments that is not reached.
fn limited(state: &State, links: &[Name]) -> Vec<Op> {
    let order = |name: &Name| {
        let (id, no) = state.home(*name);
        let link = &state.book(id).links[no];
        link.max_payments.filter(|_| state.book(id).accepts_payments(no, state.now))?;
        Some(Op::PayLink {
            name: Name('c', state.names),
            link: *name,
            asset: link.coins.as_ref().map_or(COINS[0], |coins| coins[0]),
            cents: Some(match link.pricing {
                Pricing::Fixed(cents) => cents,
                Pricing::Open { min, .. } => min.unwrap_or(1),
            }),
            answers: u8::try_from(link.questions.len()).expect("at most one"),
        })
    };
    links.iter().filter_map(order).collect()
}

fn about_deliveries(state: &State, of: BookId) -> Vec<Choice> {
    let deliveries = &state.book(of).deliveries;
    let flying = deliveries.iter().enumerate().filter(|(_, it)| it.state == DeliveryState::InFlight);
    let flying: Vec<usize> = flying.map(|(no, _)| no).collect();
    let mut all = Vec::new();
    if !deliveries.is_empty() {
        let nth = 0..deliveries.len();
        all.push((1, nth.prop_map(move |delivery| Op::Resend { of, delivery }).boxed()));
    }
    if !flying.is_empty() {
        let land = (select(flying), answer());
        all.push((4, land.prop_map(move |(delivery, answer)| Op::Land { of, delivery, answer }).boxed()));
    }
    all
}

fn book() -> impl Strategy<Value = BookId> + Clone {
    select(&BOOKS[..])
}

fn wait() -> impl Strategy<Value = Span> {
    let almost = Span(LOCK.0 - 1);
    select(vec![
        Span(0),
        Span(1),
        Span::secs(1),
        Span::mins(1),
        Span::mins(5),
        Span::mins(10),
        almost,
        LOCK,
        Span::hours(1),
        Span::hours(10),
        Span::hours(24),
        Span::days(2),
    ])
}

fn rate() -> BoxedStrategy<Op> {
    (select(&COINS[..]), select(&CURRENCIES[..]), option::weighted(0.5, select(vec![1_u64, 3, 700])))
        .prop_map(|(asset, currency, times)| {
            let units = times.map(|times| first_rate(asset) / 7 * times);
            Op::Rate { asset, currency, units }
        })
        .boxed()
}

fn blocks() -> BoxedStrategy<Op> {
    (select(&Mode::ALL[..]), select(&COINS[..]), select(vec![1_u64, 2, 40]))
        .prop_map(|(mode, asset, blocks)| Op::Blocks { mode, asset, blocks })
        .boxed()
}

fn bounds() -> BoxedStrategy<Op> {
    (0_usize..2, select(vec![0_u32, 100, 250, 9_999]), select(vec![0_u32, 1, 300]))
        .prop_map(|(account, tolerance, threshold)| Op::Bounds { account, tolerance, threshold })
        .boxed()
}

const PRICES: [u64; 5] = [1, 500, 4_990, 15_000, 1_234_567];

/// Few keys, so that they are used repeatedly.
fn once() -> impl Strategy<Value = Option<u8>> {
    option::weighted(0.3, 0_u8..2)
}

fn open(name: Name, links: Vec<Name>) -> BoxedStrategy<Op> {
    let link =
        if links.is_empty() { Just(None).boxed() } else { option::weighted(0.3, select(links)).boxed() };
    (
        book(),
        select(&COINS[..]),
        select(&PRICES[..]),
        select(&CURRENCIES[..]),
        link,
        (any::<bool>(), answers()),
        once(),
    )
        .prop_map(move |(who, asset, cents, currency, link, (says, answers), once)| {
            let answers = if link.is_some() { answers } else { answers / 2 };
            let cents = if link.is_some() && !says { 0 } else { cents };
            Op::Open { name, who, asset, cents, currency, link, answers, once }
        })
        .boxed()
}

/// Rarely two answers.
fn answers() -> impl Strategy<Value = u8> {
    prop_oneof![6 => Just(0_u8), 3 => Just(1), 1 => Just(2)]
}

fn issue(name: Name) -> BoxedStrategy<Op> {
    (
        book(),
        select(&PRICES[..]),
        select(vec![Reader::Member, Reader::Missing, Reader::Outsider]),
        any::<bool>(),
        once(),
    )
        .prop_map(move |(who, cents, reader, send, once)| Op::Issue { name, who, cents, reader, send, once })
        .boxed()
}

fn link(name: Name) -> BoxedStrategy<Op> {
    let pricing = prop_oneof![
        select(&PRICES[..]).prop_map(Pricing::Fixed),
        Just(Pricing::Open { min: Some(500), max: Some(15_000) }),
        Just(Pricing::Open { min: Some(1), max: Some(1_234_567) }),
    ];
    let only = option::weighted(0.3, select(&COINS[..]));
    let max = option::weighted(0.4, 1_u32..3);
    let lasts = option::weighted(0.3, select(vec![Span::mins(5), Span::hours(1)]));
    let asks = option::weighted(0.3, any::<bool>());
    (book(), pricing, only, max, lasts, asks)
        .prop_map(move |(who, pricing, only, max, lasts, asks)| Op::MakeLink {
            name,
            who,
            pricing,
            only,
            max,
            lasts,
            asks,
        })
        .boxed()
}

/// All thirteen types, those of charges, or a few.
fn kinds() -> impl Strategy<Value = u16> {
    prop_oneof![3 => Just(0x1fff_u16), 1 => Just(0xff), 2 => 1_u16..0x2000]
}

fn hook(name: Name) -> BoxedStrategy<Op> {
    (book(), kinds()).prop_map(move |(of, kinds)| Op::Hook { name, of, kinds }).boxed()
}

fn at_hook(hooks: Vec<Name>) -> BoxedStrategy<Op> {
    let hook = select(hooks);
    prop_oneof![
        (hook.clone(), kinds()).prop_map(|(hook, kinds)| Op::Choices { hook, kinds }),
        (hook.clone(), any::<bool>()).prop_map(|(hook, on)| Op::Switch { hook, on }),
        hook.clone().prop_map(|hook| Op::Unhook { hook }),
        hook.clone().prop_map(|hook| Op::Rotate { hook }),
        hook.prop_map(|hook| Op::Test { hook }),
    ]
    .boxed()
}

fn answer() -> impl Strategy<Value = Answer> {
    select(vec![
        Answer::Status(200),
        Answer::Status(299),
        Answer::Status(500),
        Answer::Status(302),
        Answer::Status(199),
        Answer::Silence,
        Answer::NoConnection,
    ])
}

/// Usually the owner or the correct key.
fn by(some: Vec<(Name, BookId)>) -> impl Strategy<Value = (Name, By)> {
    (select(some), 0_u8..6, book()).prop_map(|((name, home), who, other)| match who {
        0 => (name, By::Owner),
        1 => (name, By::Key(other)),
        _ => (name, By::Key(home)),
    })
}

fn cancel(some: Vec<(Name, BookId)>) -> BoxedStrategy<Op> {
    (by(some), once()).prop_map(|((charge, by), once)| Op::Cancel { by, charge, once }).boxed()
}

fn accept(state: &State, charges: &[Name]) -> BoxedStrategy<Op> {
    let known: Vec<(Name, Option<u32>)> = charges
        .iter()
        .flat_map(|name| {
            let money = state.charge(*name).transfers.iter();
            money
                .map(|money| (*name, txid(&money.txid)))
                .chain([(*name, None), (*name, None)])
                .collect::<Vec<_>>()
        })
        .collect();
    select(known).prop_map(|(charge, txid)| Op::Accept { charge, txid }).boxed()
}

fn refund(state: &State, charges: &[Name]) -> BoxedStrategy<Op> {
    let known: Vec<_> = charges
        .iter()
        .flat_map(|name| {
            let charge = state.charge(*name);
            // A refunded transfer may disappear from the chain later.
            let left = charge.refundable().saturating_sub(charge.refunded());
            let of = |money: &ChargeTransfer| Some((txid(&money.txid)?, money.units));
            let transfers = charge.transfers.iter().map(of);
            transfers.chain([None]).map(|of| (*name, state.home(*name).0, left, of)).collect::<Vec<_>>()
        })
        .collect();
    (select(known), 0_u8..6, any::<bool>(), book(), once())
        .prop_map(|((charge, home, left, of), how, is_named, other, once)| {
            let (who, units) = match (how, of) {
                (0, _) => (home, left + 1),
                (1, _) => (home, 0),
                (2, _) => (other, 1),
                (3, _) => (home, left / 2),
                (4, Some((_, units))) => (home, units.min(left)),
                _ => (home, left),
            };
            let txid = of.filter(|_| is_named).map(|(txid, _)| txid);
            Op::Refund { who, charge, units, txid, once }
        })
        .boxed()
}

/// A reader that has started usually continues.
fn turn(state: &State) -> BoxedStrategy<Op> {
    let any = (book(), select(&List::ALL[..]), 1_usize..4).prop_map(|(who, list, per_page)| Op::Turn {
        who,
        list,
        per_page,
    });
    let long = BOOKS.into_iter().flat_map(|who| List::ALL.map(|list| (who, list)));
    let long: Vec<(BookId, List)> = long.filter(|(who, list)| state.book(*who).length(*list) > 1).collect();
    let any = if long.is_empty() {
        any.boxed()
    } else {
        let long = (select(long), 1_usize..3);
        prop_oneof![
            1 => any,
            3 => long.prop_map(|((who, list), per_page)| Op::Turn { who, list, per_page }),
        ]
        .boxed()
    };
    let more = state.pages.followed.iter().filter(|((_, _, per_page), it)| it.page * per_page < it.total);
    let more: Vec<Op> = more
        .map(|((who, list, per_page), _)| Op::Turn { who: *who, list: *list, per_page: *per_page })
        .collect();
    if more.is_empty() { any.boxed() } else { prop_oneof![1 => any, 2 => select(more)].boxed() }
}

/// A reader of page 1 increments `page`.
fn number(state: &State) -> BoxedStrategy<Op> {
    let any = (book(), select(&List::ALL[..]), 1_usize..3, 1_usize..4);
    let any = any.prop_map(|(who, list, per_page, page)| Op::Number { who, list, per_page, page });
    let known: Vec<_> = state.pages.remembered.keys().copied().collect();
    if known.is_empty() {
        return any.boxed();
    }
    let more = (select(known), 1_usize..4).prop_map(|((who, list, per_page), page)| Op::Number {
        who,
        list,
        per_page,
        page,
    });
    prop_oneof![1 => any, 2 => more].boxed()
}

/// Repeats a write with an idempotency key: unchanged, or with another content.
fn again(state: &State) -> BoxedStrategy<Op> {
    let name = state.names;
    (select(state.keyed.clone()), 0_u8..3)
        .prop_map(move |(op, how)| {
            let other = how == 0;
            match op {
                Op::Open { name: Name(kind, _), who, asset, cents, currency, link, answers, once } => {
                    let currency = match currency {
                        Currency::Eur if other => Currency::Usd,
                        currency => currency,
                    };
                    Op::Open { name: Name(kind, name), who, asset, cents, currency, link, answers, once }
                }
                Op::Issue { name: Name(kind, _), who, cents, reader, send, once } => {
                    let cents = if other { cents + 1 } else { cents };
                    Op::Issue { name: Name(kind, name), who, cents, reader, send, once }
                }
                Op::Refund { who, charge, units, txid, once } => {
                    let units = if other { units + 1 } else { units };
                    Op::Refund { who, charge, units, txid, once }
                }
                op => op,
            }
        })
        .boxed()
}
