//! The pages of payout wallets, the outbox, and the account's settings.

use askama::Template;
use reference_core::{asset::Currency, error::ApiError, wallet::Script};
use simulator::api::{ChainRecord, MailRecord, WalletRecord};

use super::{PageView, live_block, static_block};
use crate::{
    pages::dashboard::{context::PageContext, fragments},
    pages::objects::{AccountView, Invoice},
    refusal::Refusal,
};

const MAILS_MAX: usize = 100;

/// A coin with its wallet, if there is one.
struct CoinWallet {
    chain: ChainRecord,
    wallet: Option<WalletRecord>,
}

impl CoinWallet {
    /// Returns a description of the source of the wallet's addresses; empty without a wallet.
    fn source(&self) -> String {
        match &self.wallet {
            None => String::new(),
            Some(WalletRecord { key: Some(_), .. }) => "extended public key".to_owned(),
            Some(WalletRecord { listed: 0, .. }) => "built-in addresses".to_owned(),
            Some(WalletRecord { listed: 1, .. }) => "1 address".to_owned(),
            Some(WalletRecord { listed, .. }) => format!("{listed} addresses"),
        }
    }

    /// Returns `true` if a key may have several address types.
    fn has_scripts(&self) -> bool {
        Script::is_for(self.chain.asset.facts().address_format)
    }

    /// Returns `true` if the coin has no extended public keys, so that the wallet is a list of addresses.
    fn needs_address_list(&self) -> bool {
        self.chain.wallet == "addresses"
    }
}

/// Returns the coins of this mode, each with the wallet of this account.
async fn load_coins(context: &PageContext) -> Result<Vec<CoinWallet>, Refusal> {
    let (chains, mut wallets) = context
        .read(|book| Ok((book.sandbox.overview().chains, book.sandbox.wallets(book.account_and_mode))))
        .await?;
    let of_mode = chains.into_iter().filter(|chain| chain.mode == context.book_id.mode);
    Ok(of_mode
        .map(|chain| {
            let index = wallets.iter().position(|wallet| wallet.asset == chain.asset);
            CoinWallet { wallet: index.map(|index| wallets.swap_remove(index)), chain }
        })
        .collect())
}

#[derive(Template)]
#[template(path = "dashboard/wallets.html")]
struct WalletsBlock<'a> {
    context: &'a PageContext,
    coins: Vec<CoinWallet>,
}

pub(super) async fn wallets(context: &PageContext) -> Result<PageView, Refusal> {
    let block = static_block(&WalletsBlock { context, coins: load_coins(context).await? })?;
    Ok(PageView { state: None, title: "Payout wallets".to_owned(), blocks: vec![block] })
}

#[derive(Template)]
#[template(path = "dashboard/wallet.html")]
struct WalletBlock<'a> {
    context: &'a PageContext,
    coin: CoinWallet,
    form: String,
    /// The last input, unless it was a secret.
    input: &'a str,
}

pub(super) async fn wallet(context: &PageContext, asset: &str) -> Result<PageView, Refusal> {
    let coin = load_coins(context).await?.into_iter().find(|coin| coin.chain.asset.code() == asset);
    let coin = coin.ok_or(Refusal::NotFound)?;
    let form = format!("/wallets/{asset}");
    let field = if coin.needs_address_list() { "addresses" } else { "key" };
    // A private key is not sent back, because it would be visible on the screen.
    let is_secret = context.draft.errors(&form, field).iter().any(|error| error.contains("private key"));
    let input = if is_secret { "" } else { context.draft.value(&form, field) };
    let block = static_block(&WalletBlock { context, coin, form, input })?;
    Ok(PageView { state: None, title: format!("{asset} wallet"), blocks: vec![block] })
}

#[derive(Template)]
#[template(path = "dashboard/outbox.html")]
struct OutboxBlock<'a> {
    context: &'a PageContext,
    /// The e-mails, each with the number of its invoice, newest first.
    mails: Vec<(String, MailRecord)>,
    members: Vec<String>,
}

pub(super) async fn outbox(context: &PageContext) -> Result<PageView, Refusal> {
    let (mails, members) = context
        .read(|book| {
            let mails = book.sandbox.mails(book.account_and_mode, MAILS_MAX);
            let number = |mail: &MailRecord| {
                Ok(Invoice::from_book(book, book.find_invoice(mail.invoice)?).number.clone())
            };
            let mails = mails.into_iter().rev().map(|mail| Ok((number(&mail)?, mail)));
            Ok((mails.collect::<Result<Vec<_>, ApiError>>()?, book.account().settings.members))
        })
        .await?;
    let block = live_block("outbox", &OutboxBlock { context, mails, members })?;
    Ok(PageView { state: None, title: "E-mail outbox".to_owned(), blocks: vec![block] })
}

#[derive(Template)]
#[template(path = "dashboard/settings.html")]
struct SettingsBlock<'a> {
    context: &'a PageContext,
    account: AccountView,
    members: String,
    currencies: [&'static str; Currency::ALL.len()],
}

/// A text field of the settings.
struct SettingField {
    name: &'static str,
    label: &'static str,
    hint: &'static str,
    value: String,
}

impl SettingsBlock<'_> {
    fn text_fields(&self) -> [SettingField; 9] {
        let account = &self.account.settings;
        let fields = [
            ("name", "Name", "", account.name.clone()),
            ("display_name", "Shown to customers", "", account.display_name.clone()),
            ("logo_url", "Logo", "https address", account.logo_url.clone().unwrap_or_default()),
            ("brand_color", "Colour", "# and six hex digits", account.brand_color.clone()),
            ("website_url", "Website", "", account.website_url.clone().unwrap_or_default()),
            ("support_email", "Support e-mail", "", account.support_email.clone().unwrap_or_default()),
            ("support_phone", "Support phone", "", account.support_phone.clone().unwrap_or_default()),
            (
                "underpayment_tolerance",
                "Tolerance",
                "percent that may be missing",
                account.underpayment_tolerance.to_string(),
            ),
            (
                "overpayment_threshold",
                "Overpaid above",
                "percent more than due",
                account.overpayment_threshold.to_string(),
            ),
        ];
        fields.map(|(name, label, hint, value)| SettingField { name, label, hint, value })
    }
}

pub(super) async fn settings(context: &PageContext) -> Result<PageView, Refusal> {
    let account = context.read(|book| Ok(book.account())).await?;
    let block = static_block(&SettingsBlock {
        context,
        members: account.settings.members.join("\n"),
        account,
        currencies: Currency::ALL.map(Currency::code),
    })?;
    Ok(PageView { state: None, title: "Settings".to_owned(), blocks: vec![block] })
}
