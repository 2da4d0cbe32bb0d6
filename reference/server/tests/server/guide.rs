//! The example test in reference/WORLDS.md: the code below the line `// guide`.

// guide
use reference_server::Local;

#[test]
fn a_paid_charge_is_announced() -> std::io::Result<()> {
    let server = Local::frozen("2026-01-05T09:00:00Z")?;
    // Use your client here, with server.url() and server.test_key().
    let order = r#"{"asset":"BTC","amount":"49.90","currency":"EUR"}"#;
    let opened = server.sandbox("books/acme/test/charges", order)?;
    let (_, rest) = opened.split_once(r#""id":""#).expect("a charge has an id");
    let charge = &rest[..12];

    server.sandbox("pay", &format!(r#"{{"charge":"{charge}"}}"#))?;
    let happened = server.sandbox("mine", r#"{"asset":"BTC","mode":"test","blocks":1}"#)?;

    assert!(happened.contains("charge.paid"), "{happened}");
    Ok(())
}
