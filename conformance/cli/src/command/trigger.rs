//! `chargeproof trigger`: causes an event in a running reference server.

use conformance::report::{escape_invisible, one_line};
use simulator::api::{WorldEvent, WorldEventKind};

use super::{
    recipe::RecipeParameters,
    served_world::{CreatedObjects, ServedWorld},
};
use crate::{
    Failure,
    args::{Format, Trigger},
    terminal::{DIM, GOOD, note, print_line},
};

/// Statuses with which handlers usually refuse a signature.
const REFUSALS: [&str; 3] = ["400", "401", "403"];

pub(crate) fn run(args: &Trigger) -> Result<u8, Failure> {
    let token = args.sandbox_token_env.as_deref().map(super::environment_variable).transpose()?;
    let mut world = ServedWorld::connect(&args.to, token)?;
    let parameters = RecipeParameters { mode: args.mode, ..RecipeParameters::default() };
    let created = world.cause_event(args.event, &parameters);
    world.revoke_keys()?;
    let created = created?;
    let url = dashboard_url(args, &world, &created);
    match args.format {
        Format::Json => print_line!(
            "{}",
            escape_invisible(
                &serde_json::json!({
                    "event": args.event.as_str(),
                    "mode": args.mode.as_str(),
                    "charge": created.charge,
                    "invoice": created.invoice,
                    "happened": created.events,
                    "dashboard": url,
                })
                .to_string()
            )
        ),
        Format::Text => print_result(args, &created, &url),
    }
    Ok(0)
}

/// Returns the URL of the dashboard page of the charge or invoice.
fn dashboard_url(args: &Trigger, world: &ServedWorld, created: &CreatedObjects) -> String {
    let (list, code) = match (&created.invoice, &created.charge) {
        (Some(invoice), _) => ("invoices", invoice),
        (None, Some(charge)) => ("charges", charge),
        (None, None) => unreachable!("every recipe creates a charge or an invoice"),
    };
    let base = args.to.trim_end_matches('/');
    format!("{base}/dashboard/{}/{}/{list}/{code}", world.account(), args.mode.as_str())
}

fn print_result(args: &Trigger, created: &CreatedObjects, url: &str) {
    let mut is_refused = false;
    for WorldEvent { kind: event_kind, .. } in &created.events {
        match event_kind {
            WorldEventKind::Event { kind, subject, .. } => {
                print_line!("{GOOD}{:<24}{GOOD:#} {subject}", kind.as_str());
            }
            WorldEventKind::Attempt { host, kind, attempt, answer, .. } => {
                is_refused |= REFUSALS.contains(&answer.as_str());
                let attempt_line = format!("POST to {host}: {}, try {attempt}: {answer}", kind.as_str());
                print_line!("  {DIM}{}{DIM:#}", one_line(&attempt_line));
            }
            _ => {}
        }
    }
    if is_refused {
        let mode = args.mode.as_str();
        note!("the handler refused a delivery of {mode} mode; check that it has the secret of the endpoint");
    }
    print_line!("{}", one_line(url));
}
