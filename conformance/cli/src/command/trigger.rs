//! `chargeproof trigger`: causes an event in a served world.

use conformance::report::{escape_invisible, one_line};
use simulator::api::{WorldEvent, WorldEventKind};

use super::{
    recipe::Terms,
    served_world::{CreatedObjects, ServedWorld},
};
use crate::{
    Failure,
    args::{Format, Trigger},
    terminal::{DIM, GOOD, note, say},
};

/// Responses of a handler that does not accept a signature.
const REFUSALS: [&str; 3] = ["400", "401", "403"];

pub(crate) fn run(args: &Trigger) -> Result<u8, Failure> {
    let token = args.sandbox_token_env.as_deref().map(super::variable).transpose()?;
    let mut world = ServedWorld::connect(&args.to, token)?;
    let terms = Terms { mode: args.mode, ..Terms::default() };
    let made = world.cause_event(args.event, &terms);
    world.revoke_keys()?;
    let made = made?;
    let address = address_of(args, &world, &made);
    match args.format {
        Format::Json => say!(
            "{}",
            escape_invisible(
                &serde_json::json!({
                    "event": args.event.as_str(),
                    "mode": args.mode.as_str(),
                    "charge": made.charge,
                    "invoice": made.invoice,
                    "happened": made.happened,
                    "dashboard": address,
                })
                .to_string()
            )
        ),
        Format::Text => print_result(args, &made, &address),
    }
    Ok(0)
}

/// Returns the address of the dashboard page for the object of the event.
fn address_of(args: &Trigger, world: &ServedWorld, made: &CreatedObjects) -> String {
    let (list, code) = match (&made.invoice, &made.charge) {
        (Some(invoice), _) => ("invoices", invoice),
        (None, Some(charge)) => ("charges", charge),
        (None, None) => unreachable!("every recipe opens a charge or an invoice"),
    };
    let base = args.to.trim_end_matches('/');
    format!("{base}/dashboard/{}/{}/{list}/{code}", world.account(), args.mode.as_str())
}

fn print_result(args: &Trigger, made: &CreatedObjects, address: &str) {
    let mut is_refused = false;
    for WorldEvent { what, .. } in &made.happened {
        match what {
            WorldEventKind::Event { kind, subject, .. } => {
                say!("{GOOD}{:<24}{GOOD:#} {subject}", kind.as_str());
            }
            WorldEventKind::Post { host, kind, attempt, answer, .. } => {
                is_refused |= REFUSALS.contains(&answer.as_str());
                let post = format!("POST to {host}: {}, try {attempt}: {answer}", kind.as_str());
                say!("  {DIM}{}{DIM:#}", one_line(&post));
            }
            _ => {}
        }
    }
    if is_refused {
        let mode = args.mode.as_str();
        note!("the handler refused a delivery of {mode} mode; check that it has the secret of that mode");
    }
    say!("{}", one_line(address));
}
