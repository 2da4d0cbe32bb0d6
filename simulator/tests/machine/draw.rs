//! Which deeds may come next: likely ones often, and amounts, depths and moments at their bounds.

use proptest::{option, prelude::*, sample::select, strategy::Union};
use proptest_state_machine::ReferenceStateMachine;
use reference_core::{asset::Currency, time::Span};
use simulator::model::LOCK;

use crate::{
    chain::{late, pay, tell, txid},
    deed::{Answer, By, Deed, Name, Place, Pricing, Read, Reader},
    world::{COINS, CURRENCIES, Paper, Standing, World, first_rate},
};

/// The machine that proptest drives.
pub(crate) struct Machine;

impl ReferenceStateMachine for Machine {
    type State = World;
    type Transition = Deed;

    fn init_state() -> BoxedStrategy<World> {
        Just(World::new()).boxed()
    }

    fn transitions(world: &World) -> BoxedStrategy<Deed> {
        Union::new_weighted(choices(world)).boxed()
    }

    fn apply(mut world: World, deed: &Deed) -> World {
        world.apply(deed);
        world
    }

    fn preconditions(world: &World, deed: &Deed) -> bool {
        world.allows(deed)
    }
}

pub(crate) type Choice = (u32, BoxedStrategy<Deed>);

/// Most worlds stay small, so that deeds meet each other.
const OF_A_KIND_MAX: usize = 6;

fn choices(world: &World) -> Vec<Choice> {
    let mut deliveries = world.books.iter().flat_map(|book| &book.deliveries);
    let is_due = deliveries.any(|it| matches!(it.standing, Standing::Waiting(at) if at <= world.now));
    let mut all = vec![
        (3, wait().prop_map(Deed::Wait).boxed()),
        (1, wait().prop_map(Deed::Oversleep).boxed()),
        (2, rate()),
        (1, bounds()),
        (1, Just(Deed::Restart).boxed()),
        (1, place().prop_map(Deed::NewKey).boxed()),
        (3, turn(world)),
        (3, number(world)),
        (1, Just(Deed::Take).boxed()),
        (if is_due { 6 } else { 1 }, answer().prop_map(Deed::Post).boxed()),
        (if is_due { 4 } else { 1 }, answer().prop_map(Deed::PostAll).boxed()),
        (1, answer().prop_map(Deed::Exhaust).boxed()),
    ];
    let names = |kind: char| world.homes.keys().copied().filter(|name| name.0 == kind).collect::<Vec<_>>();
    let next = |kind: char| Name(kind, world.names);
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
        let some = charges.iter().map(|name| (*name, world.home(*name).0)).collect::<Vec<_>>();
        all.push((12, tell(world, &charges)));
        all.push((
            4,
            (select(charges.clone()), select(vec![-1_i64, 0, 1]))
                .prop_map(|(of, off)| Deed::LockEnd { of, off })
                .boxed(),
        ));
        all.push((2, cancel(some.clone())));
        all.push((3, accept(world, &charges)));
        all.extend(late(world, &charges));
        all.extend(pay(world, &charges).into_iter().map(|deed| (4, deed)));
        all.push((3, refund(world, &charges)));
    }
    if !invoices.is_empty() {
        let some = invoices.iter().map(|name| (*name, world.home(*name).0)).collect::<Vec<_>>();
        let (name, coins) = (next('c'), select(&COINS[..]));
        let is_open = |name: &Name| {
            let (place, no) = world.home(*name);
            world.books[place.0].invoices[no].status == Paper::Open
        };
        let open: Vec<Name> = invoices.iter().copied().filter(is_open).collect();
        let invoice = select(invoices);
        let chosen = if open.is_empty() { invoice.clone() } else { select(open) };
        all.push((2, by(some.clone()).prop_map(|(invoice, by)| Deed::Send { by, invoice }).boxed()));
        all.push((1, by(some).prop_map(|(invoice, by)| Deed::Void { by, invoice }).boxed()));
        all.push((2, invoice.prop_map(|invoice| Deed::View { invoice }).boxed()));
        all.push((
            5,
            (chosen, coins).prop_map(move |(invoice, asset)| Deed::Choose { name, invoice, asset }).boxed(),
        ));
    }
    if !links.is_empty() {
        let name = next('c');
        let link = select(links);
        let pay = (link.clone(), select(&COINS[..]), option::of(select(&PRICES[..])));
        all.push((
            2,
            pay.prop_map(move |(link, asset, cents)| Deed::PayLink { name, link, asset, cents }).boxed(),
        ));
        all.push((1, link.clone().prop_map(|link| Deed::ViewLink { link }).boxed()));
        let limit = (place(), link.clone(), option::of(1_u32..3));
        all.push((1, limit.prop_map(|(who, link, max)| Deed::Limit { who, link, max }).boxed()));
        all.push((
            1,
            (place(), link, any::<bool>())
                .prop_map(|(who, link, on)| Deed::Archive { who, link, on })
                .boxed(),
        ));
    }
    if !hooks.is_empty() {
        all.push((4, at_hook(hooks)));
    }
    for place in Place::ALL {
        let deliveries = &world.books[place.0].deliveries;
        if !deliveries.is_empty() {
            let nth = 0..deliveries.len();
            all.push((1, nth.prop_map(move |delivery| Deed::Resend { of: place, delivery }).boxed()));
        }
        let flying = deliveries.iter().enumerate().filter(|(_, it)| it.standing == Standing::Flying);
        let flying: Vec<usize> = flying.map(|(no, _)| no).collect();
        if !flying.is_empty() {
            let land = (select(flying), answer());
            all.push((
                4,
                land.prop_map(move |(delivery, answer)| Deed::Land { of: place, delivery, answer }).boxed(),
            ));
        }
    }
    if !world.keyed.is_empty() {
        all.push((4, again(world)));
    }
    all
}

fn place() -> impl Strategy<Value = Place> + Clone {
    select(&Place::ALL[..])
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

fn rate() -> BoxedStrategy<Deed> {
    (select(&COINS[..]), select(&CURRENCIES[..]), option::weighted(0.5, select(vec![1_u64, 3, 700])))
        .prop_map(|(asset, currency, times)| {
            let units = times.map(|times| first_rate(asset) / 7 * times);
            Deed::Rate { asset, currency, units }
        })
        .boxed()
}

fn bounds() -> BoxedStrategy<Deed> {
    (0_usize..2, select(vec![0_u32, 100, 250, 9_999]), select(vec![0_u32, 1, 300]))
        .prop_map(|(account, tolerance, threshold)| Deed::Bounds { account, tolerance, threshold })
        .boxed()
}

const PRICES: [u64; 5] = [1, 500, 4_990, 15_000, 1_234_567];

/// Few keys, so that they meet.
fn once() -> impl Strategy<Value = Option<u8>> {
    option::weighted(0.3, 0_u8..2)
}

fn open(name: Name, links: Vec<Name>) -> BoxedStrategy<Deed> {
    let link =
        if links.is_empty() { Just(None).boxed() } else { option::weighted(0.3, select(links)).boxed() };
    (place(), select(&COINS[..]), select(&PRICES[..]), select(&CURRENCIES[..]), link, any::<bool>(), once())
        .prop_map(move |(who, asset, cents, currency, link, says, once)| {
            let cents = if link.is_some() && !says { 0 } else { cents };
            Deed::Open { name, who, asset, cents, currency, link, once }
        })
        .boxed()
}

fn issue(name: Name) -> BoxedStrategy<Deed> {
    (
        place(),
        select(&PRICES[..]),
        select(vec![Reader::Member, Reader::Nobody, Reader::Stranger]),
        any::<bool>(),
        once(),
    )
        .prop_map(move |(who, cents, reader, send, once)| Deed::Issue {
            name,
            who,
            cents,
            reader,
            send,
            once,
        })
        .boxed()
}

fn link(name: Name) -> BoxedStrategy<Deed> {
    let pricing = prop_oneof![
        select(&PRICES[..]).prop_map(Pricing::Fixed),
        Just(Pricing::Open { min: 500, max: 15_000 }),
        Just(Pricing::Open { min: 1, max: 1_234_567 }),
    ];
    let only = option::weighted(0.3, select(&COINS[..]));
    let max = option::weighted(0.4, 1_u32..3);
    let lasts = option::weighted(0.3, select(vec![Span::mins(5), Span::hours(1)]));
    (place(), pricing, only, max, lasts)
        .prop_map(move |(who, pricing, only, max, lasts)| Deed::MakeLink {
            name,
            who,
            pricing,
            only,
            max,
            lasts,
        })
        .boxed()
}

/// All thirteen, the charges', or a few.
fn kinds() -> impl Strategy<Value = u16> {
    prop_oneof![3 => Just(0x1fff_u16), 1 => Just(0xff), 2 => 1_u16..0x2000]
}

fn hook(name: Name) -> BoxedStrategy<Deed> {
    (place(), kinds()).prop_map(move |(of, kinds)| Deed::Hook { name, of, kinds }).boxed()
}

fn at_hook(hooks: Vec<Name>) -> BoxedStrategy<Deed> {
    let hook = select(hooks);
    prop_oneof![
        (hook.clone(), kinds()).prop_map(|(hook, kinds)| Deed::Choices { hook, kinds }),
        (hook.clone(), any::<bool>()).prop_map(|(hook, on)| Deed::Switch { hook, on }),
        hook.clone().prop_map(|hook| Deed::Unhook { hook }),
        hook.clone().prop_map(|hook| Deed::Rotate { hook }),
        hook.prop_map(|hook| Deed::Test { hook }),
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

/// Mostly the owner or the right key.
fn by(some: Vec<(Name, Place)>) -> impl Strategy<Value = (Name, By)> {
    (select(some), 0_u8..6, place()).prop_map(|((name, home), who, stranger)| match who {
        0 => (name, By::Owner),
        1 => (name, By::Key(stranger)),
        _ => (name, By::Key(home)),
    })
}

fn cancel(some: Vec<(Name, Place)>) -> BoxedStrategy<Deed> {
    (by(some), once()).prop_map(|((charge, by), once)| Deed::Cancel { by, charge, once }).boxed()
}

fn accept(world: &World, charges: &[Name]) -> BoxedStrategy<Deed> {
    let known: Vec<(Name, Option<u32>)> = charges
        .iter()
        .flat_map(|name| {
            let money = world.charge(*name).it.money.iter();
            money
                .map(|money| (*name, txid(&money.txid)))
                .chain([(*name, None), (*name, None)])
                .collect::<Vec<_>>()
        })
        .collect();
    select(known).prop_map(|(charge, txid)| Deed::Accept { charge, txid }).boxed()
}

fn refund(world: &World, charges: &[Name]) -> BoxedStrategy<Deed> {
    let known: Vec<(Name, Place, u128)> = charges
        .iter()
        .map(|name| {
            let charge = world.charge(*name);
            // What was sent back may vanish from the chain afterwards.
            let left = charge.it.received().saturating_sub(charge.refunds.iter().sum());
            (*name, world.home(*name).0, left)
        })
        .collect();
    (select(known), 0_u8..5, place(), once())
        .prop_map(|((charge, home, left), how, stranger, once)| {
            let (who, units) = match how {
                0 => (home, left + 1),
                1 => (home, 0),
                2 => (stranger, 1),
                3 => (home, left / 2),
                _ => (home, left),
            };
            Deed::Refund { who, charge, units, once }
        })
        .boxed()
}

/// Whoever began to read mostly reads on.
fn turn(world: &World) -> BoxedStrategy<Deed> {
    let any = (place(), select(&Read::ALL[..]), 1_usize..4).prop_map(|(who, list, per_page)| Deed::Turn {
        who,
        list,
        per_page,
    });
    let long = Place::ALL.into_iter().flat_map(|who| Read::ALL.map(|list| (who, list)));
    let long: Vec<(Place, Read)> = long.filter(|(who, list)| world.books[who.0].length(*list) > 1).collect();
    let any = if long.is_empty() {
        any.boxed()
    } else {
        let long = (select(long), 1_usize..3);
        prop_oneof![
            1 => any,
            3 => long.prop_map(|((who, list), per_page)| Deed::Turn { who, list, per_page }),
        ]
        .boxed()
    };
    let more = world.readings.iter().filter(|((_, _, per_page), it)| it.page * per_page < it.total);
    let more: Vec<Deed> = more
        .map(|((who, list, per_page), _)| Deed::Turn { who: *who, list: *list, per_page: *per_page })
        .collect();
    if more.is_empty() { any.boxed() } else { prop_oneof![1 => any, 2 => select(more)].boxed() }
}

/// Whoever read page 1 counts up.
fn number(world: &World) -> BoxedStrategy<Deed> {
    let any = (place(), select(&Read::ALL[..]), 1_usize..3, 1_usize..4);
    let any = any.prop_map(|(who, list, per_page, page)| Deed::Number { who, list, per_page, page });
    let known: Vec<_> = world.memories.keys().copied().collect();
    if known.is_empty() {
        return any.boxed();
    }
    let more = (select(known), 1_usize..4).prop_map(|((who, list, per_page), page)| Deed::Number {
        who,
        list,
        per_page,
        page,
    });
    prop_oneof![1 => any, 2 => more].boxed()
}

/// A write that carried an idempotency key once more: as it was, or saying something else.
fn again(world: &World) -> BoxedStrategy<Deed> {
    let name = world.names;
    (select(world.keyed.clone()), 0_u8..3)
        .prop_map(move |(deed, how)| {
            let other = how == 0;
            match deed {
                Deed::Open { name: Name(kind, _), who, asset, cents, currency, link, once } => {
                    let currency = match currency {
                        Currency::Eur if other => Currency::Usd,
                        currency => currency,
                    };
                    Deed::Open { name: Name(kind, name), who, asset, cents, currency, link, once }
                }
                Deed::Issue { name: Name(kind, _), who, cents, reader, send, once } => {
                    let cents = if other { cents + 1 } else { cents };
                    Deed::Issue { name: Name(kind, name), who, cents, reader, send, once }
                }
                Deed::Refund { who, charge, units, once } => {
                    Deed::Refund { who, charge, units: if other { units + 1 } else { units }, once }
                }
                deed => deed,
            }
        })
        .boxed()
}
