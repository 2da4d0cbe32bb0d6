//! Payout wallets, the outbox, the account's settings.

use askama::Template;
use reference_core::asset::Currency;

use super::{Sheet, live, still};
use crate::{
    pages::dashboard::{
        desk::Desk,
        facts::{AccountAnswer, Chain, Glance, Invoice, Mail, Mails, One, Wallet, Wallets, World},
        pieces,
    },
    refusal::Refusal,
};

const MAILS_SHOWN: usize = 100;

/// A coin and the wallet for it, if there is one.
struct Coin {
    chain: Chain,
    wallet: Option<Wallet>,
}

impl Coin {
    /// Where its addresses come from, in words.
    fn source(&self) -> String {
        match &self.wallet {
            None => String::new(),
            Some(Wallet { key: Some(_), .. }) => "extended public key".to_owned(),
            Some(Wallet { listed: 0, .. }) => "built-in addresses".to_owned(),
            Some(Wallet { listed: 1, .. }) => "1 address".to_owned(),
            Some(Wallet { listed, .. }) => format!("{listed} addresses"),
        }
    }

    fn takes_list(&self) -> bool {
        self.chain.wallet == "addresses"
    }
}

async fn coins(desk: &Desk) -> Result<Vec<Coin>, Refusal> {
    let World { chains, .. } = desk.get("/sandbox").await?;
    let Wallets { mut wallets } = desk.get("/sandbox/wallets").await?;
    wallets.retain(|wallet| wallet.account == desk.place.account && wallet.mode == desk.place.mode);
    let of_mode = chains.into_iter().filter(|chain| chain.mode == desk.place.mode);
    Ok(of_mode
        .map(|chain| {
            let place = wallets.iter().position(|wallet| wallet.asset == chain.asset);
            Coin { wallet: place.map(|place| wallets.swap_remove(place)), chain }
        })
        .collect())
}

#[derive(Template)]
#[template(path = "dashboard/wallets.html")]
struct WalletsBlock<'a> {
    desk: &'a Desk,
    coins: Vec<Coin>,
}

pub(super) async fn wallets(desk: &Desk) -> Result<Sheet, Refusal> {
    let block = still(&WalletsBlock { desk, coins: coins(desk).await? })?;
    Ok(Sheet { title: "Payout wallets".to_owned(), blocks: vec![block] })
}

#[derive(Template)]
#[template(path = "dashboard/wallet.html")]
struct WalletBlock<'a> {
    desk: &'a Desk,
    coin: Coin,
    form: String,
    /// What was typed last, unless it was a secret.
    typed: &'a str,
}

pub(super) async fn wallet(desk: &Desk, asset: &str) -> Result<Sheet, Refusal> {
    let coin = coins(desk).await?.into_iter().find(|coin| coin.chain.asset == asset);
    let coin = coin.ok_or(Refusal::NotFound)?;
    let form = format!("/wallets/{asset}");
    let field = if coin.takes_list() { "addresses" } else { "key" };
    // Nobody sends a private key back to where others may look over a shoulder.
    let is_secret = desk.draft.wrong(&form, field).iter().any(|wrong| wrong.contains("private key"));
    let typed = if is_secret { "" } else { desk.draft.typed(&form, field) };
    let block = still(&WalletBlock { desk, coin, form, typed })?;
    Ok(Sheet { title: format!("{asset} wallet"), blocks: vec![block] })
}

#[derive(Template)]
#[template(path = "dashboard/outbox.html")]
struct OutboxBlock<'a> {
    desk: &'a Desk,
    mails: Vec<(Mail, String)>,
    members: Vec<String>,
}

pub(super) async fn outbox(desk: &Desk) -> Result<Sheet, Refusal> {
    let (account, mode) = (&desk.place.account, desk.place.mode);
    let path = format!("/sandbox/mails?account={account}&mode={mode}&limit={MAILS_SHOWN}");
    let Mails { mails: sent } = desk.get(&path).await?;
    let mut mails = Vec::with_capacity(sent.len());
    for mail in sent.into_iter().rev() {
        let One { data } = desk.book::<One<Invoice>>(&format!("/invoices/{}", mail.invoice)).await?;
        mails.push((mail, data.number));
    }
    let Glance { members, .. } = desk.book("").await?;
    let block = live("outbox", &OutboxBlock { desk, mails, members })?;
    Ok(Sheet { title: "E-mail outbox".to_owned(), blocks: vec![block] })
}

#[derive(Template)]
#[template(path = "dashboard/settings.html")]
struct SettingsBlock<'a> {
    desk: &'a Desk,
    answer: AccountAnswer,
    members: String,
    currencies: [&'static str; Currency::ALL.len()],
}

impl SettingsBlock<'_> {
    /// The plain fields: name, label, hint, value.
    fn texts(&self) -> [(&'static str, &'static str, &'static str, &str); 6] {
        let account = &self.answer.data;
        [
            ("name", "Name", "", &account.name),
            ("display_name", "Shown to customers", "", &account.display_name),
            ("website_url", "Website", "", account.website_url.as_deref().unwrap_or_default()),
            ("support_email", "Support e-mail", "", account.support_email.as_deref().unwrap_or_default()),
            (
                "underpayment_tolerance",
                "Tolerance",
                "percent that may be missing",
                &account.underpayment_tolerance,
            ),
            (
                "overpayment_threshold",
                "Overpaid above",
                "percent more than due",
                &account.overpayment_threshold,
            ),
        ]
    }
}

pub(super) async fn settings(desk: &Desk) -> Result<Sheet, Refusal> {
    let answer: AccountAnswer = desk.book("/account").await?;
    let Glance { members, .. } = desk.book("").await?;
    let block = still(&SettingsBlock {
        desk,
        answer,
        members: members.join("\n"),
        currencies: Currency::ALL.map(Currency::code),
    })?;
    Ok(Sheet { title: "Settings".to_owned(), blocks: vec![block] })
}
