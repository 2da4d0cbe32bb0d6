//! Accounts, their settings, keys and wallets.

use reference_core::{
    account::{AccountKind, Settings},
    action::{Act, Done, Payout, SettingsDraft},
    asset::Currency,
    error::ApiError,
    id::Code,
    money::Percent,
    wire::fields::{Fields, PROSE_MAX, TEXT_MAX},
};
use serde_json::{Map, Value, json};

use super::{Outcome, answer, nothing, read_account, read_asset, read_mode, shape};
use crate::sandbox::Sandbox;

const MEMBERS_MAX: usize = 100;
const ADDRESSES_MAX: usize = 10_000;

const SETTINGS: [&str; 10] = [
    "name",
    "display_name",
    "logo_url",
    "website_url",
    "support_email",
    "brand_color",
    "default_currency",
    "underpayment_tolerance",
    "overpayment_threshold",
    "members",
];

/// The settings of an account; other keys than these and `beside` are refused.
pub(super) fn read_settings(f: &mut Fields<'_>, beside: &[&str]) -> SettingsDraft {
    let known: Vec<&str> = SETTINGS.iter().chain(beside).copied().collect();
    f.only(&known);
    let is_colour = |text: &str| {
        let digits = text.strip_prefix('#')?;
        (digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_hexdigit())).then(|| text.to_owned())
    };
    SettingsDraft {
        name: f.text("name", TEXT_MAX),
        display_name: f.text("display_name", TEXT_MAX),
        logo_url: f.has("logo_url").then(|| f.web_address("logo_url")),
        website_url: f.has("website_url").then(|| f.web_address("website_url")),
        support_email: f.has("support_email").then(|| f.email("support_email")),
        brand_color: f.word("brand_color", is_colour),
        default_currency: f.word("default_currency", Currency::parse),
        underpayment_tolerance: f.parsed("underpayment_tolerance", Percent::parse),
        overpayment_threshold: f.parsed("overpayment_threshold", Percent::parse),
        members: f.has("members").then(|| f.texts("members", MEMBERS_MAX)),
    }
}

pub(super) fn open(sandbox: &mut Sandbox, body: &[u8]) -> Outcome {
    let mut f = Fields::read(body)?;
    let draft = read_settings(&mut f, &["id", "type"]);
    let id = f.required_text("id", TEXT_MAX);
    let kind = f.word("type", |word| match word {
        "personal" => Some(AccountKind::Personal),
        "organization" => Some(AccountKind::Organization),
        _ => None,
    });
    f.finish()?;
    let id = id.ok_or_else(|| ApiError::field("id", "The id field is required."))?;
    let mut settings = Settings::new(&id);
    settings.change(draft);
    let kind = kind.unwrap_or(AccountKind::Organization);
    let account = sandbox.desk.open_account(sandbox.now, &id, kind, settings)?;
    let keys = sandbox.create_keys(account);
    Ok(Map::from_iter([
        ("account".to_owned(), json!(id)),
        ("keys".to_owned(), json!({ "live": keys.live, "test": keys.test })),
    ]))
}

pub(super) fn change(sandbox: &mut Sandbox, id: &str, body: &[u8]) -> Outcome {
    let account = sandbox.service().find_account(id).ok_or(ApiError::NotFound)?;
    let mut f = Fields::read(body)?;
    let draft = read_settings(&mut f, &[]);
    f.finish()?;
    sandbox.act(account, reference_core::mode::Mode::Live, Act::ChangeSettings(Box::new(draft)))?;
    nothing()
}

pub(super) fn keys(sandbox: &Sandbox) -> Outcome {
    let service = sandbox.service();
    let keys: Vec<Value> = service.keys().iter().map(|key| shape::key(service, key)).collect();
    answer("keys", Value::Array(keys))
}

pub(super) fn create_key(sandbox: &mut Sandbox, body: &[u8]) -> Outcome {
    let mut f = Fields::read(body)?;
    f.only(&["account", "mode"]);
    let account = read_account(sandbox, &mut f);
    let mode = read_mode(sandbox, &mut f);
    f.finish()?;
    let account = account.expect("an unknown account was refused");
    let Done::Key(no, text) = sandbox.act(account, mode, Act::CreateKey)? else {
        unreachable!("making a key gives a key");
    };
    let service = sandbox.service();
    let mut key = shape::key(service, service.keys().get(no));
    key["secret"] = json!(text.reveal());
    answer("key", key)
}

pub(super) fn revoke_key(sandbox: &mut Sandbox, id: Code) -> Outcome {
    let key = sandbox.service().keys().iter().find(|key| key.id == id).ok_or(ApiError::NotFound)?;
    let who = key.principal;
    sandbox.act(who.account, who.mode, Act::RevokeKey(id))?;
    nothing()
}

pub(super) fn wallets(sandbox: &Sandbox) -> Outcome {
    let service = sandbox.service();
    let wallets: Vec<Value> = service
        .books()
        .flat_map(|(account, mode, book)| {
            let id = &service.account(account).id;
            book.payouts().iter().map(move |(asset, wallet)| {
                json!({
                    "account": id, "mode": mode.as_str(), "asset": asset.code(),
                    "key": wallet.extended_key().map(ToString::to_string),
                    "listed": wallet.listed().len(),
                    "first_address": wallet.address(0),
                })
            })
        })
        .collect();
    answer("wallets", Value::Array(wallets))
}

pub(super) fn set_wallet(sandbox: &mut Sandbox, body: &[u8]) -> Outcome {
    let mut f = Fields::read(body)?;
    f.only(&["account", "mode", "asset", "key", "addresses"]);
    let account = read_account(sandbox, &mut f);
    let mode = read_mode(sandbox, &mut f);
    let asset = read_asset(&mut f);
    let key = f.text("key", PROSE_MAX);
    let addresses = f.texts("addresses", ADDRESSES_MAX);
    if key.is_some() != addresses.is_empty() {
        f.wrong("key", "Give either {} (an extended public key) or addresses.");
    }
    f.finish()?;
    let payout = key.map_or(Payout::Addresses(addresses), Payout::Key);
    let (account, asset) = account.zip(asset).expect("missing values were refused");
    sandbox.act(account, mode, Act::SetWallet { asset, payout })?;
    nothing()
}

pub(super) fn remove_wallet(sandbox: &mut Sandbox, body: &[u8]) -> Outcome {
    let mut f = Fields::read(body)?;
    f.only(&["account", "mode", "asset"]);
    let account = read_account(sandbox, &mut f);
    let mode = read_mode(sandbox, &mut f);
    let asset = read_asset(&mut f);
    f.finish()?;
    let (account, asset) = account.zip(asset).expect("missing values were refused");
    sandbox.act(account, mode, Act::RemoveWallet(asset))?;
    nothing()
}
