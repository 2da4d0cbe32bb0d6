//! Accounts, their settings, keys and wallets.

use reference_core::{
    account::{AccountKind, Settings},
    business::{Business, PostalAddress},
    command::{BookCommand, Command, CommandResult, SettingsDraft, WalletInput},
    error::ApiError,
    id::AccountNo,
    mode::Mode,
    money::Percent,
    wallet::Script,
};
use reference_wire::fields::{Fields, PROSE_MAX, TEXT_MAX};

use super::{
    Outcome,
    call::{SandboxCall, required},
    empty_response, json_response, records,
};
use crate::{
    api::{
        Body, KeyList, KeyPair, KeyRecord, KeyRequest, KeyResponse, NewAccount, WalletList, WalletRecord,
        WalletRemovalRequest, WalletRequest, WalletResponse,
    },
    sandbox::Sandbox,
};

/// The maximum number of members of an account.
const MEMBERS_MAX: usize = 100;
/// The fields of a business.
const BUSINESS: [&str; 9] = [
    "type",
    "legal_name",
    "registration_number",
    "tax_id",
    "address",
    "industry",
    "product_description",
    "monthly_volume",
    "phone",
];
const POSTAL_ADDRESS: [&str; 6] = ["line1", "line2", "city", "state", "postal_code", "country"];

/// Reads the settings of an account.
pub(super) fn read_settings(f: &mut Fields<'_>) -> SettingsDraft {
    let parse_colour = |text: &str| {
        let digits = text.strip_prefix('#')?;
        (digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_hexdigit())).then(|| text.to_owned())
    };
    SettingsDraft {
        name: f.text("name", TEXT_MAX),
        display_name: f.text("display_name", TEXT_MAX),
        logo_url: f.has("logo_url").then(|| f.web_address("logo_url")),
        website_url: f.has("website_url").then(|| f.web_address("website_url")),
        support_email: f.has("support_email").then(|| f.email("support_email")),
        support_phone: f.has("support_phone").then(|| f.text("support_phone", TEXT_MAX)),
        brand_color: f.parsed_text("brand_color", "#1f6feb", parse_colour),
        business: f.has("business").then(|| f.object("business", read_business)),
        default_currency: f.currency("default_currency"),
        underpayment_tolerance: f.amount("underpayment_tolerance", Percent::parse),
        overpayment_threshold: f.amount("overpayment_threshold", Percent::parse),
        members: f.has("members").then(|| f.texts("members", MEMBERS_MAX)),
    }
}

/// Reads a business. Returns `None` if it has no fields.
fn read_business(f: &mut Fields<'_>) -> Option<Business> {
    f.reject_unknown(&BUSINESS);
    let business = Business {
        kind: f.text("type", TEXT_MAX),
        legal_name: f.text("legal_name", TEXT_MAX),
        registration_number: f.text("registration_number", TEXT_MAX),
        tax_id: f.text("tax_id", TEXT_MAX),
        address: f.object("address", read_postal_address),
        industry: f.text("industry", TEXT_MAX),
        product_description: f.text("product_description", PROSE_MAX),
        monthly_volume: f.text("monthly_volume", TEXT_MAX),
        phone: f.text("phone", TEXT_MAX),
    };
    Some(business).filter(|business| *business != Business::default())
}

fn read_postal_address(f: &mut Fields<'_>) -> Option<PostalAddress> {
    f.reject_unknown(&POSTAL_ADDRESS);
    let address = PostalAddress {
        line1: f.text("line1", TEXT_MAX),
        line2: f.text("line2", TEXT_MAX),
        city: f.text("city", TEXT_MAX),
        state: f.text("state", TEXT_MAX),
        postal_code: f.text("postal_code", TEXT_MAX),
        country: f.country("country"),
    };
    Some(address).filter(|address| *address != PostalAddress::default())
}

pub(super) fn open(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let draft = read_settings(&mut f);
    let id = f.required_text("id", TEXT_MAX);
    let kind = f.choice("type", &["personal", "organization"], |name| match name {
        "personal" => Some(AccountKind::Personal),
        "organization" => Some(AccountKind::Organization),
        _ => None,
    });
    f.finish()?;
    let id = required(id, "id")?;
    let mut settings = Settings::new(&id);
    settings.apply(draft);
    let kind = kind.unwrap_or(AccountKind::Organization);
    let world = call.world_mut();
    let account = world.service.open_account(world.now, &id, kind, settings)?;
    let keys = world.create_keys(account);
    json_response(NewAccount { account: id, keys: KeyPair { live: keys.live, test: keys.test } })
}

pub(super) fn change(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let account = call.service().find_account(call.parameters()[0]).ok_or(ApiError::NotFound)?;
    let draft = read_settings(&mut f);
    f.finish()?;
    // Both modes share the settings; the command needs one of them.
    call.execute((account, Mode::Live), Command::ChangeSettings(Box::new(draft)))?;
    empty_response()
}

pub(super) fn keys(call: &mut SandboxCall<'_>, _: Fields<'_>) -> Outcome {
    json_response(KeyList { keys: call.sandbox.keys() })
}

impl Sandbox {
    /// Returns the keys of all accounts, in order of creation.
    pub fn keys(&self) -> Vec<KeyRecord> {
        let service = self.service();
        service.keys().iter().map(|key| records::key_record(service, key)).collect()
    }

    /// Returns the payout wallets of a book.
    pub fn wallets(&self, (account, mode): (AccountNo, Mode)) -> Vec<WalletRecord> {
        let owner = self.service().account(account);
        let wallets = owner.book(mode).wallets().iter();
        wallets.map(|(asset, wallet)| records::wallet_record(&owner.id, mode, asset, wallet)).collect()
    }
}

pub(super) fn create_key(call: &mut SandboxCall<'_>, mut body: Body<'_, KeyRequest>) -> Outcome {
    let (account, mode) = call.own_book(body.account.clone(), body.mode, &mut body.fields);
    body.finish()?;
    let CommandResult::Key(no, secret) = call.execute((account, mode), Command::CreateKey)? else {
        unreachable!("`CreateKey` returns a key");
    };
    let service = call.service();
    let mut key = records::key_record(service, service.keys().get(no));
    key.secret = Some(secret.reveal().to_owned());
    json_response(KeyResponse { key })
}

pub(super) fn revoke_key(call: &mut SandboxCall<'_>, f: Fields<'_>) -> Outcome {
    let id = call.id()?;
    let key = call.service().keys().iter().find(|key| key.id == id).ok_or(ApiError::NotFound)?;
    let principal = key.principal;
    f.finish()?;
    call.execute((principal.account, principal.mode), Command::RevokeKey(id))?;
    empty_response()
}

pub(super) fn wallets(call: &mut SandboxCall<'_>, _: Fields<'_>) -> Outcome {
    let books = call.service().books();
    let wallets = books.flat_map(|(account, mode, _)| call.sandbox.wallets((account, mode)));
    json_response(WalletList { wallets: wallets.collect() })
}

pub(super) fn set_wallet(call: &mut SandboxCall<'_>, mut body: Body<'_, WalletRequest>) -> Outcome {
    let book_id = call.own_book(body.account.clone(), body.mode, &mut body.fields);
    if body.script.is_some() && body.key.is_none() {
        let sentence = "The {} field sets the address type of a key; give it together with key.";
        body.fields.add_error("script", sentence);
    }
    if body.key.is_some() != body.addresses.as_ref().is_none_or(Vec::is_empty) {
        body.fields.add_error("key", "Give either {} (an extended public key) or addresses.");
    }
    let WalletRequest { asset, key, script, addresses, .. } = body.finish()?;
    let script = script.as_deref().and_then(Script::parse);
    let addresses = addresses.unwrap_or_default();
    let input = key.map_or(WalletInput::Addresses(addresses), |text| WalletInput::Key { text, script });
    call.execute(book_id, Command::SetWallet { asset, input })?;
    let mut wallets = call.sandbox.wallets(book_id).into_iter();
    let wallet = wallets.find(|wallet| wallet.asset == asset).expect("the wallet is set");
    json_response(WalletResponse { wallet })
}

pub(super) fn remove_wallet(call: &mut SandboxCall<'_>, mut body: Body<'_, WalletRemovalRequest>) -> Outcome {
    let book_id = call.own_book(body.account.clone(), body.mode, &mut body.fields);
    call.execute(book_id, BookCommand::RemoveWallet(body.finish()?.asset))?;
    empty_response()
}
