//! Accounts, their settings, keys and wallets.

use reference_core::{
    account::{AccountKind, Settings},
    asset::Currency,
    command::{BookCommand, Command, CommandResult, Payout, SettingsDraft},
    error::ApiError,
    mode::Mode,
    money::Percent,
};
use reference_wire::fields::{Fields, PROSE_MAX, TEXT_MAX};

use super::{
    Outcome, answer,
    call::{SandboxCall, read_asset, required},
    nothing, records,
};
use crate::api::{KeyAnswer, KeyList, KeyPair, NewAccount, WalletAnswer, WalletList};

const MEMBERS_MAX: usize = 100;
const ADDRESSES_MAX: usize = 10_000;

/// The settings of an account.
pub(super) fn read_settings(f: &mut Fields<'_>) -> SettingsDraft {
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

pub(super) fn open(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let draft = read_settings(&mut f);
    let id = f.required_text("id", TEXT_MAX);
    let kind = f.word("type", |word| match word {
        "personal" => Some(AccountKind::Personal),
        "organization" => Some(AccountKind::Organization),
        _ => None,
    });
    f.finish()?;
    let id = required(id, "id")?;
    let mut settings = Settings::new(&id);
    settings.change(draft);
    let kind = kind.unwrap_or(AccountKind::Organization);
    let world = call.world_mut();
    let account = world.service.open_account(world.now, &id, kind, settings)?;
    let keys = world.create_keys(account);
    answer(NewAccount { account: id, keys: KeyPair { live: keys.live, test: keys.test } })
}

pub(super) fn change(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let account = call.service().find_account(call.parameters()[0]).ok_or(ApiError::NotFound)?;
    let draft = read_settings(&mut f);
    f.finish()?;
    call.act((account, Mode::Live), Command::ChangeSettings(Box::new(draft)))?;
    nothing()
}

pub(super) fn keys(call: &mut SandboxCall<'_>, _: Fields<'_>) -> Outcome {
    let service = call.service();
    answer(KeyList { keys: service.keys().iter().map(|key| records::key(service, key)).collect() })
}

pub(super) fn create_key(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let account = call.account(&mut f);
    let mode = call.mode(&mut f);
    f.finish()?;
    let account = required(account, "account")?;
    let CommandResult::Key(no, text) = call.act((account, mode), Command::CreateKey)? else {
        unreachable!("making a key gives a key");
    };
    let service = call.service();
    let mut key = records::key(service, service.keys().get(no));
    key.secret = Some(text.reveal().to_owned());
    answer(KeyAnswer { key })
}

pub(super) fn revoke_key(call: &mut SandboxCall<'_>, f: Fields<'_>) -> Outcome {
    let id = call.id()?;
    let key = call.service().keys().iter().find(|key| key.id == id).ok_or(ApiError::NotFound)?;
    let who = key.principal;
    f.finish()?;
    call.act((who.account, who.mode), Command::RevokeKey(id))?;
    nothing()
}

pub(super) fn wallets(call: &mut SandboxCall<'_>, _: Fields<'_>) -> Outcome {
    let service = call.service();
    let wallets = service.books().flat_map(|(account, mode, book)| {
        let id = &service.account(account).id;
        book.payouts().iter().map(move |(asset, wallet)| records::wallet(id, mode, asset, wallet))
    });
    answer(WalletList { wallets: wallets.collect() })
}

pub(super) fn set_wallet(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let account = call.account(&mut f);
    let mode = call.mode(&mut f);
    let asset = read_asset(&mut f);
    let key = f.text("key", PROSE_MAX);
    let addresses = f.texts("addresses", ADDRESSES_MAX);
    if key.is_some() != addresses.is_empty() {
        f.wrong("key", "Give either {} (an extended public key) or addresses.");
    }
    f.finish()?;
    let payout = key.map_or(Payout::Addresses(addresses), Payout::Key);
    let (account, asset) = (required(account, "account")?, required(asset, "asset")?);
    call.act((account, mode), Command::SetWallet { asset, payout })?;
    let mut wallets = call.book((account, mode)).payouts().iter();
    let (_, wallet) = wallets.find(|(set, _)| *set == asset).expect("the wallet was set just now");
    let id = &call.service().account(account).id;
    answer(WalletAnswer { wallet: records::wallet(id, mode, asset, wallet) })
}

pub(super) fn remove_wallet(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let account = call.account(&mut f);
    let mode = call.mode(&mut f);
    let asset = read_asset(&mut f);
    f.finish()?;
    let (account, asset) = (required(account, "account")?, required(asset, "asset")?);
    call.act((account, mode), BookCommand::RemoveWallet(asset))?;
    nothing()
}
