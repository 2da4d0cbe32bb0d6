//! Random worlds, judged by all laws.

use simulator::sweep::Theatre;

#[test]
fn drawn_worlds_keep_every_law() {
    let theatre = Theatre::default();
    let mut broken = Vec::new();
    for seed in 0..24 {
        let verdict = theatre.try_seed(seed);
        assert_eq!(verdict.differs, None, "seed {seed} played twice");
        broken
            .extend(verdict.findings.breaches.iter().take(2).map(|breach| format!("seed {seed}: {breach}")));
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn stats() {
    let theatre = Theatre::default();
    for seed in 0..6 {
        let v = theatre.try_seed(seed);
        println!(
            "seed {seed} events {} posts {} checks {:?} beside {} refusals {}",
            v.events,
            v.posts,
            v.findings.checks,
            v.beside,
            v.refusals.len()
        );
    }
}
