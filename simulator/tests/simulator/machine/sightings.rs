//! Draws the next sightings: amounts and depths at their bounds, one transfer or a whole block.

use proptest::{collection::vec, prelude::*, sample::select};
use reference_core::sighting::Depth;
use simulator::model::{Charge, InvoiceStatus, Status, money};

use super::{
    draw::Choice,
    op::{Astray, GONE, Name, Op, Sighted},
    state::State,
};

/// Pays the remaining amount of a waiting charge with enough confirmations, which most operations build on.
pub(super) fn pay(state: &State, charges: &[Name]) -> Option<BoxedStrategy<Op>> {
    let waiting = charges.iter().filter(|name| state.charge(**name).waits()).map(|name| {
        let it = state.charge(*name);
        let units = it.due.saturating_sub(it.received()).max(1);
        let depth = Depth::Confirmations(it.required);
        Sighted { charge: *name, txid: state.names, output: 0, units, depth, astray: Astray::No }
    });
    let waiting: Vec<Sighted> = waiting.collect();
    (!waiting.is_empty()).then(|| select(waiting).prop_map(|sighted| Op::Tell(vec![sighted])).boxed())
}

/// Pays the last charge that a link accepts, while another charge of it is waiting.
pub(super) fn fill(state: &State, charges: &[Name]) -> Option<BoxedStrategy<Op>> {
    let last = |name: &&Name| {
        let (id, no) = state.home(**name);
        let (book, charge) = (state.book(id), state.charge(**name));
        let Some(link) = charge.terms.link.filter(|_| charge.waits()) else { return false };
        let of_link = || book.charges.iter().enumerate().filter(|(_, other)| other.terms.link == Some(link));
        let paid = of_link().filter(|(_, other)| other.status == Status::Paid).count();
        let others = of_link().any(|(other, it)| other != no && it.is_untouched());
        book.links[link].max_payments.is_some_and(|max| paid + 1 == max as usize) && others
    };
    let last: Vec<Name> = charges.iter().filter(last).copied().collect();
    pay(state, &last)
}

/// Pays a closed charge in full, or lets the owner accept that; preferably while its invoice is open, because another
/// charge of it may be waiting.
pub(super) fn late(state: &State, charges: &[Name]) -> Option<Choice> {
    let over = |name: &&Name| matches!(state.charge(**name).status, Status::Expired | Status::Canceled);
    let over: Vec<&Name> = charges.iter().filter(over).collect();
    let matters = |name: &&&Name| {
        let book = state.book(state.home(***name).0);
        let invoice = state.charge(***name).terms.invoice;
        invoice.is_some_and(|no| book.invoices[no].status == InvoiceStatus::Open)
    };
    let best: Vec<&Name> = over.iter().filter(matters).copied().collect();
    let weight = if best.is_empty() { 3 } else { 10 };
    let over = if best.is_empty() { over } else { best }.into_iter().map(|name| {
        let it = state.charge(*name);
        let sighted = Sighted {
            charge: *name,
            txid: state.names,
            output: 0,
            units: it.due,
            depth: Depth::Confirmations(it.required),
            astray: Astray::No,
        };
        if it.transfers.is_empty() {
            Op::Tell(vec![sighted])
        } else {
            Op::Accept { charge: *name, txid: None }
        }
    });
    let over: Vec<Op> = over.collect();
    (!over.is_empty()).then(|| (weight, select(over).boxed()))
}

pub(super) fn txid(text: &str) -> Option<u32> {
    text.strip_prefix('t')?.parse().ok()
}

/// Returns amounts at the bounds of insufficient, sufficient and excessive.
fn amounts(charge: &Charge) -> Vec<u128> {
    let it = charge;
    let least = money::least_enough(it.due, it.tolerance);
    let most = money::most_not_overpaid(it.due, it.threshold);
    let left = it.due.saturating_sub(it.received());
    let all = [it.due, least, least.saturating_sub(1), most, most + 1, it.due / 2, left, 1, 0];
    let mut all = all.to_vec();
    all.dedup();
    all
}

fn depths(required: u32) -> Vec<Depth> {
    let mut all: Vec<Depth> = [0, 1, required - 1, required, required + 1].map(Depth::Confirmations).to_vec();
    all.push(Depth::Confirmations(required));
    all.extend(GONE.map(Depth::Gone));
    all
}

pub(super) fn sight(state: &State, charges: &[Name]) -> BoxedStrategy<Op> {
    let fresh = state.names;
    let of: Vec<(Name, Vec<u128>, Vec<Depth>)> = charges
        .iter()
        .map(|name| (*name, amounts(state.charge(*name)), depths(state.charge(*name).required)))
        .collect();
    let one = move |txid: u32| {
        select(of.clone()).prop_flat_map(move |(charge, amounts, depths)| {
            let astray =
                prop_oneof![10 => Just(Astray::No), 1 => Just(Astray::Coin), 1 => Just(Astray::Mode)];
            (select(amounts), select(depths), 0_u32..2, astray).prop_map(
                move |(units, depth, output, astray)| Sighted { charge, txid, output, units, depth, astray },
            )
        })
    };
    // A transaction may pay several charges, or one charge twice; a moment may have several transactions.
    let new = one(fresh).prop_map(|sighted| vec![sighted]);
    let outputs = vec(one(fresh), 2..4);
    let known = known(state, charges);
    if known.is_empty() {
        return prop_oneof![4 => new, 1 => outputs].prop_map(Op::Tell).boxed();
    }
    let deeper = {
        let all: Vec<(Sighted, u32)> = known.clone();
        (select(all), any::<prop::sample::Index>()).prop_map(|((sighted, required), how)| {
            let depths = depths(required);
            vec![Sighted { depth: depths[how.index(depths.len())], ..sighted }]
        })
    };
    // A block: all known transfers get one confirmation more, or are all confirmed, or are all reversed.
    let block = {
        let all = known.clone();
        (0_u32..4).prop_map(move |how| {
            let all = all.iter().filter(|(sighted, _)| matches!(sighted.depth, Depth::Confirmations(_)));
            let moved = all.map(|(sighted, required)| {
                let Depth::Confirmations(before) = sighted.depth else { unreachable!("it was filtered") };
                let after = match how {
                    0 => 0,
                    1 => before + 1,
                    2 => before.saturating_sub(1),
                    _ => *required,
                };
                Sighted { depth: Depth::Confirmations(after), ..*sighted }
            });
            moved.collect::<Vec<_>>()
        })
    };
    // A fee bump: another transaction at the same moment with the same amount, slightly more, or slightly less.
    let replaced = {
        let all = known.clone();
        (select(all), any::<bool>(), select(vec![0_u128, 0, 1, 2])).prop_map(
            move |((sighted, required), deep, more)| {
                let gone = Sighted { depth: Depth::Gone(GONE[1]), ..sighted };
                let depth = Depth::Confirmations(if deep { required } else { 0 });
                let units = (sighted.units + more).saturating_sub(1).max(1);
                let units = if more == 0 { sighted.units } else { units };
                vec![gone, Sighted { txid: fresh, depth, units, ..sighted }]
            },
        )
    };
    let mixed = (select(known), one(fresh), any::<bool>()).prop_map(|((sighted, required), other, first)| {
        let again = Sighted { depth: Depth::Confirmations(required), ..sighted };
        if first { vec![again, other] } else { vec![other, again, again] }
    });
    prop_oneof![4 => new, 1 => outputs, 6 => deeper, 3 => block, 1 => replaced, 1 => mixed]
        .prop_map(Op::Tell)
        .boxed()
}

/// Returns the known transfers with their current state, and the required confirmations.
fn known(state: &State, charges: &[Name]) -> Vec<(Sighted, u32)> {
    let of = |name: &Name| {
        let charge = state.charge(*name);
        let sightings = charge.transfers.iter().filter_map(|money| {
            let depth = money.depth.map_or(Depth::Gone(GONE[0]), Depth::Confirmations);
            let txid = txid(&money.txid)?;
            let sighted = Sighted {
                charge: *name,
                txid,
                output: money.output,
                units: money.units,
                depth,
                astray: Astray::No,
            };
            Some((sighted, charge.required))
        });
        sightings.collect::<Vec<_>>()
    };
    charges.iter().flat_map(of).collect()
}
