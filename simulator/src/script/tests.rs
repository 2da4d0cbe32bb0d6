use super::*;

/// What a file with these lines after its title is told.
#[track_caller]
fn complaint(steps: &str) -> String {
    let source = format!("title: A scenario\nsteps:\n{steps}");
    Script::parse("scenarios/charge/underpaid.yaml", &source).expect_err("the file is wrong").to_string()
}

#[test]
fn pr() {
    for t in [
        "  - payy: { charge: c1, share: 0.5 }\n",
        "  - open: { charge: c1, asset: BTC, amount: 49.90 EUR }\n  - pay: { charge: c1, shaer: 0.5 }\n",
        "  - open: { charge: c1, asset: BTX, amount: 49.90 EUR }\n",
        "  - open: { charge: c1, asset: BTC, amount: 49.90EUR }\n",
        "  - open: { charge: c1, asset: BTC, amount: 49.901 EUR }\n",
        "  - open: { charge: c1, asset: BTC, asset: LTC }\n",
        "  - open: { asset: BTC, amount: 49.90 EUR }\n",
        "  - open: { charge: c1, asset: BTC, amount: 49.90 EUR }\n  - pay: c2\n",
        "  - open: { charge: c1, asset: BTC, amount: 49.90 EUR }\n  - open: { charge: c1, asset: BTC, amount: 49.90 EUR }\n",
        "  - wait: 30\n",
        "  - endpoint: shop\n  - pay: shop\n",
        "  - endpoint: Shop\n",
        "  - endpoint: { name: shop, events: [charge.payd] }\n",
        "  - endpoint: shop\n    wait: 30s\n",
        "  - merchant: { shop: dwn }\n",
        "  - until: { at: 2026-01-05T09:00:00Z, expiry: c1 }\n",
        "  - open: { charge: c1, asset: BTC, amount: 49.90 EUR }\n  - pay: { charge: c1, share: 0.5, amount: 1 }\n",
        "  - wait: [ 30s\n",
        "  - open: &x { charge: c1, asset: BTC, amount: 49.90 EUR }\n",
        "  - pay: 5\n",
        "  - expect: { c1: paid }\n",
        "  - mine: { asset: BTC, blocks: two }\n",
        "  - mine: { asset: BTC, at_once: yes }\n",
        "",
        "  {}",
    ] {
        println!("{}\n", complaint(t));
    }
}
