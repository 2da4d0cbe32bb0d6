//! Random worlds, judged by all laws.

use simulator::sweep::Theatre;

#[test]
fn drawn_worlds_keep_every_law() {
    let theatre = Theatre::default();
    let mut broken = Vec::new();
    for seed in 0..24 {
        let verdict = theatre.try_seed(seed);
        assert_eq!(verdict.differs, None, "seed {seed} played twice");
        broken.extend(verdict.findings.breaches.iter().take(2).map(|breach| format!("seed {seed}: {breach}")));
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
