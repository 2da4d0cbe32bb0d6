//! What watchers may say next: amounts and depths at their bounds, one transfer or a whole block.

use proptest::{collection::vec, prelude::*, sample::select};
use reference_core::sighting::Depth;
use simulator::model::{Status, money};

use crate::{
    deed::{Astray, Deed, GONE, Name, Notice},
    draw::Choice,
    world::{ChargeOf, Paper, World},
};

/// What is left comes to a charge that waits, and is deep enough at once: most stories go on from there.
pub(crate) fn pay(world: &World, charges: &[Name]) -> Option<BoxedStrategy<Deed>> {
    let waiting = charges.iter().filter(|name| world.charge(**name).it.waits()).map(|name| {
        let it = &world.charge(*name).it;
        let units = it.due.saturating_sub(it.received()).max(1);
        let depth = Depth::Confirmations(it.required);
        Notice { charge: *name, txid: world.names, output: 0, units, depth, astray: Astray::No }
    });
    let waiting: Vec<Notice> = waiting.collect();
    (!waiting.is_empty()).then(|| select(waiting).prop_map(|notice| Deed::Tell(vec![notice])).boxed())
}

/// All that was due comes to a charge that is over, or the owner takes it: best while its invoice is open, because then
/// another charge of it may wait.
pub(crate) fn late(world: &World, charges: &[Name]) -> Option<Choice> {
    let over = |name: &&Name| matches!(world.charge(**name).it.status, Status::Expired | Status::Canceled);
    let over: Vec<&Name> = charges.iter().filter(over).collect();
    let matters = |name: &&&Name| {
        let book = &world.books[world.home(***name).0.0];
        let invoice = world.charge(***name).invoice;
        invoice.is_some_and(|no| book.invoices[no].status == Paper::Open)
    };
    let best: Vec<&Name> = over.iter().filter(matters).copied().collect();
    let weight = if best.is_empty() { 3 } else { 10 };
    let over = if best.is_empty() { over } else { best }.into_iter().map(|name| {
        let it = &world.charge(*name).it;
        let notice = Notice {
            charge: *name,
            txid: world.names,
            output: 0,
            units: it.due,
            depth: Depth::Confirmations(it.required),
            astray: Astray::No,
        };
        if it.money.is_empty() {
            Deed::Tell(vec![notice])
        } else {
            Deed::Accept { charge: *name, txid: None }
        }
    });
    let over: Vec<Deed> = over.collect();
    (!over.is_empty()).then(|| (weight, select(over).boxed()))
}

pub(crate) fn txid(text: &str) -> Option<u32> {
    text.strip_prefix('t')?.parse().ok()
}

/// What an amount may be: at the bounds of too little, enough and too much.
fn amounts(charge: &ChargeOf) -> Vec<u128> {
    let it = &charge.it;
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

pub(crate) fn tell(world: &World, charges: &[Name]) -> BoxedStrategy<Deed> {
    let fresh = world.names;
    let of: Vec<(Name, Vec<u128>, Vec<Depth>)> = charges
        .iter()
        .map(|name| (*name, amounts(world.charge(*name)), depths(world.charge(*name).it.required)))
        .collect();
    let one = move |txid: u32| {
        select(of.clone()).prop_flat_map(move |(charge, amounts, depths)| {
            let astray =
                prop_oneof![10 => Just(Astray::No), 1 => Just(Astray::Coin), 1 => Just(Astray::Mode)];
            (select(amounts), select(depths), 0_u32..2, astray).prop_map(
                move |(units, depth, output, astray)| Notice { charge, txid, output, units, depth, astray },
            )
        })
    };
    // One transaction may pay several charges and one charge twice; a breath may hold several transactions.
    let new = one(fresh).prop_map(|notice| vec![notice]);
    let outputs = vec(one(fresh), 2..4);
    let known = known(world, charges);
    if known.is_empty() {
        return prop_oneof![4 => new, 1 => outputs].prop_map(Deed::Tell).boxed();
    }
    let deeper = {
        let all: Vec<(Notice, u32)> = known.clone();
        (select(all), any::<prop::sample::Index>()).prop_map(|((notice, required), how)| {
            let depths = depths(required);
            vec![Notice { depth: depths[how.index(depths.len())], ..notice }]
        })
    };
    // A block: everything that is known goes one deeper, or all of it is deep, or thrown back.
    let block = {
        let all = known.clone();
        (0_u32..4).prop_map(move |how| {
            let all = all.iter().filter(|(notice, _)| matches!(notice.depth, Depth::Confirmations(_)));
            let moved = all.map(|(notice, required)| {
                let Depth::Confirmations(before) = notice.depth else { unreachable!("it was filtered") };
                let after = match how {
                    0 => 0,
                    1 => before + 1,
                    2 => before.saturating_sub(1),
                    _ => *required,
                };
                Notice { depth: Depth::Confirmations(after), ..*notice }
            });
            moved.collect::<Vec<_>>()
        })
    };
    // The same money in another transaction, at the same moment.
    let replaced = {
        let all = known.clone();
        (select(all), any::<bool>()).prop_map(move |((notice, required), deep)| {
            let gone = Notice { depth: Depth::Gone(GONE[1]), ..notice };
            let depth = Depth::Confirmations(if deep { required } else { 0 });
            vec![gone, Notice { txid: fresh, depth, ..notice }]
        })
    };
    let mixed = (select(known), one(fresh), any::<bool>()).prop_map(|((notice, required), other, first)| {
        let again = Notice { depth: Depth::Confirmations(required), ..notice };
        if first { vec![again, other] } else { vec![other, again, again] }
    });
    prop_oneof![4 => new, 1 => outputs, 6 => deeper, 3 => block, 1 => replaced, 1 => mixed]
        .prop_map(Deed::Tell)
        .boxed()
}

/// Transfers that were heard of, as they stand, with the confirmations that they need.
fn known(world: &World, charges: &[Name]) -> Vec<(Notice, u32)> {
    let of = |name: &Name| {
        let charge = world.charge(*name);
        let notices = charge.it.money.iter().filter_map(|money| {
            let depth = money.depth.map_or(Depth::Gone(GONE[0]), Depth::Confirmations);
            let txid = txid(&money.txid)?;
            let notice = Notice {
                charge: *name,
                txid,
                output: money.output,
                units: money.units,
                depth,
                astray: Astray::No,
            };
            Some((notice, charge.it.required))
        });
        notices.collect::<Vec<_>>()
    };
    charges.iter().flat_map(of).collect()
}
