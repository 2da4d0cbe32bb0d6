//! Tests of sightings around the end of a charge's rate lock.

use reference_core::money::Coin;

use super::*;

/// Parses a sighting such as `t1 1000 0`: a transaction, units, and confirmations or the reason why it disappeared.
fn sighting(text: &str) -> Sighting {
    let [txid, units, depth] =
        text.split(' ').collect::<Vec<_>>().try_into().expect("a sighting has three parts");
    let units: u128 = units.parse().expect("the amount is a number");
    Sighting {
        mode: Mode::Live,
        asset: Asset::Btc,
        address: String::new(),
        txid: txid.to_owned(),
        output: 0,
        amount: Coin::new(units * money::atto_per_unit(Asset::Btc)).expect("the amount is in range"),
        depth: match depth {
            "replaced" => Depth::Absent(Disappearance::Replaced),
            "dropped" => Depth::Absent(Disappearance::Dropped),
            depth => Depth::Confirmations(depth.parse().expect("the depth is a number")),
        },
        height: 0,
    }
}

/// Checks the events of a charge of 1000 units. `inputs` are sightings, by minutes after opening. `expected`
/// lists the minute, the event and the transaction of each event.
#[track_caller]
fn check(inputs: &[(u64, &str)], expected: &str) -> Charge {
    let terms = Terms {
        asset: Asset::Btc,
        cents: 1,
        currency: Currency::Eur,
        rate: 100_000_000_000,
        link: None,
        invoice: None,
    };
    let mut charge = Charge::open(Timestamp(0), (terms, ChargeTexts::default()), (100, 300), Mode::Live);
    assert_eq!(charge.due, 1_000);
    let mut recorded = Vec::new();
    let mut lock_ends = vec![charge.lock_ends_at, charge.lock_ends_at.plus(HOLD_MAX)];
    for (minute, text) in inputs {
        let now = Timestamp(0).plus(Span::mins(*minute));
        let mut new_events = Vec::new();
        for end in lock_ends.extract_if(.., |end| *end <= now) {
            let mut events = Vec::new();
            charge.expire_if_due(end, &mut events);
            new_events.extend(events.into_iter().map(|event| (end, event)));
        }
        let sightings: Vec<Sighting> =
            text.split(", ").filter(|text| !text.is_empty()).map(sighting).collect();
        let sightings: Vec<&Sighting> = sightings.iter().collect();
        new_events.extend(charge.on_sightings(now, &sightings).into_iter().map(|event| (now, event)));
        recorded.extend(new_events.into_iter().map(|(at, event)| {
            let (name, txid) = match event {
                ChargeEvent::Detected { txid, .. } => ("detected", txid),
                ChargeEvent::Paid { txid, .. } => ("paid", txid),
                ChargeEvent::Underpaid { txid, .. } => ("underpaid", txid),
                ChargeEvent::Late { txid, .. } => ("late", txid),
                ChargeEvent::Expired => ("expired", String::new()),
            };
            format!("{} {name} {txid}", at.0 / Span::mins(1).0).trim_end().to_owned()
        }));
    }
    assert_eq!(recorded.join(", "), expected);
    charge
}

#[test]
fn dust_does_not_hold_a_charge_open() {
    check(&[(29, "t1 1 0"), (31, "t2 1000 9")], "29 detected t1, 30 expired, 30 late t1, 31 late t2");
}

#[test]
fn sufficient_transfers_hold_a_charge_for_a_day() {
    let hold = (28, "t1 500 9, t2 490 0");
    check(&[hold, (900, "t2 490 9")], "28 detected t1, 28 detected t2, 28 underpaid t1, 900 paid t2");
    check(
        &[hold, (2_000, "")],
        "28 detected t1, 28 detected t2, 28 underpaid t1, 1470 expired, 1470 late t2",
    );
    check(&[hold, (31, "t2 490 dropped")], "28 detected t1, 28 detected t2, 28 underpaid t1, 31 expired");
}

#[test]
fn a_transfer_first_seen_in_a_hold_is_late() {
    check(
        &[(29, "t1 1000 0"), (31, "t2 500 9"), (40, "t1 1000 9")],
        "29 detected t1, 31 late t2, 40 paid t1",
    );
}

#[test]
fn a_fee_bump_of_the_same_amount_counts_as_seen_when_the_original_was() {
    let detected = (29, "t1 1000 0");
    check(
        &[detected, (40, "t1 1000 replaced, t2 1000 0"), (50, "t2 1000 9")],
        "29 detected t1, 40 detected t2, 50 paid t2",
    );
    check(&[detected, (40, "t1 1000 replaced, t2 999 0")], "29 detected t1, 40 expired, 40 late t2");
    check(
        &[detected, (40, "t1 1000 replaced, t2 500 0, t2 500 0")],
        "29 detected t1, 40 expired, 40 late t2",
    );
    check(
        &[detected, (40, "t1 1000 replaced, t2 1000 0, t3 500 0")],
        "29 detected t1, 40 detected t2, 40 late t3",
    );
}

#[test]
fn a_reorganised_transfer_of_a_paid_charge_is_not_received() {
    let charge = check(&[(10, "t1 1000 9"), (12, "t1 1000 0")], "10 detected t1, 10 paid t1");
    assert_eq!((charge.status, charge.received_units(), charge.refundable_units()), (Status::Paid, 0, 0));
}

#[test]
fn a_confirmed_late_transfer_can_be_refunded() {
    let mut charge = check(&[(31, "t1 700 0")], "30 expired, 31 late t1");
    assert!(!charge.refund(Timestamp(0), 1, (None, None)));
    let mut charge = check(&[(31, "t1 700 9")], "30 expired, 31 late t1");
    assert!(
        !charge.refund(Timestamp(0), 701, (None, None))
            && charge.refund(Timestamp(0), 700, (None, None))
            && !charge.refund(Timestamp(0), 1, (None, None))
    );
}
