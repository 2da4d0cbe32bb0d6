//! Constructors of steps and their values, without positions in a file.

use std::collections::BTreeMap;

use reference_core::{
    asset::{Asset, Currency},
    mode::Mode,
    time::Span,
};

use crate::script::{
    At, SourceSpan,
    step::{
        Accept, Answers, By, Cancel, ExpectedResponse, FeeLevel, MerchantState, NoticePolicy, Pay, Rate,
        Refund, Request, Resend, Shorthand, Step, TransactionStep, Watcher,
    },
    value::{
        Amount, AssetCode, CurrencyCode, DeliveryStatus, Duration, FiatRate, ModeName, Name, Price, Share,
    },
};

pub(super) fn without_span<T>(value: T) -> At<T> {
    At { value, span: SourceSpan::default() }
}

pub(super) fn name(text: &str) -> At<Name> {
    without_span(Name(text.to_owned()))
}

/// Returns a mode for a step; live mode is omitted.
pub(super) fn mode(mode: Mode) -> Option<ModeName> {
    (mode != Mode::Live).then_some(ModeName(mode))
}

pub(super) fn coin(asset: Asset) -> AssetCode {
    AssetCode(asset)
}

pub(super) fn price(cents: u64) -> Price {
    Price { amount: format!("{}.{:02}", cents / 100, cents % 100), currency: Currency::Eur }
}

/// The currency of all prices.
pub(super) const EUR: CurrencyCode = CurrencyCode(Currency::Eur);

/// Returns a price without its currency.
pub(super) fn cents(cents: u64) -> Amount {
    Amount(price(cents).amount)
}

/// Formats hundredths of a percent: 250 gives `2.50`.
pub(super) fn percent(hundredths: u32) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Returns a request with a key.
pub(super) fn request(method: &str, path: String, key: &str) -> Request {
    Request {
        method: (method != "GET").then(|| method.to_owned()),
        path: without_span(path),
        key: Some(name(key)),
        body: None,
        headers: BTreeMap::new(),
        times: None,
        save: BTreeMap::new(),
        expect: ExpectedResponse::default(),
    }
}

pub(super) fn amount(text: String) -> At<Amount> {
    without_span(Amount(text))
}

/// Returns a payment of the whole remaining amount.
pub(super) fn pay(charge: &str, tx: &str) -> Pay {
    Pay { charge: Some(name(charge)), tx: Some(name(tx)), ..Pay::default() }
}

/// Returns a share below 100 percent.
pub(super) fn share(percent: u64) -> At<Share> {
    without_span(Share(format!("0.{percent:02}")))
}

pub(super) fn pay_step(pay: Pay) -> Step {
    Step::Pay(Shorthand(pay))
}

pub(super) fn cancel(charge: &str, by: By) -> Step {
    Step::Cancel(Shorthand(Cancel { charge: name(charge), by, refused: None }))
}

pub(super) fn accept(charge: &str, tx: Option<&str>) -> Step {
    Step::Accept(Shorthand(Accept { charge: name(charge), tx: tx.map(name), refused: None }))
}

pub(super) fn transaction_step(tx: &str) -> Shorthand<TransactionStep> {
    Shorthand(TransactionStep { tx: name(tx), refused: None })
}

pub(super) fn refund(charge: &str, amount: String) -> Step {
    Step::Refund(Refund {
        charge: name(charge),
        amount: Amount(amount),
        reason: None,
        txid: None,
        refused: None,
    })
}

/// Returns the step that sets a rate, in units of 10⁻⁸; `None` makes it unavailable.
pub(super) fn rate(asset: Asset, units: Option<u64>) -> Step {
    let rate = units.map(|units| format!("{}.{:08}", units / 100_000_000, units % 100_000_000));
    Step::Rate(Rate { asset: coin(asset), currency: CurrencyCode(Currency::Eur), rate: FiatRate(rate) })
}

/// Returns the step that sets the first responses of a merchant, and its behaviour after them.
pub(super) fn merchant(host: &str, first: &[&str], then: &str) -> Step {
    let first = first.iter().map(|response| (*response).to_owned()).collect();
    let responses = Answers { first, then: MerchantState(then.to_owned()) };
    Step::Merchant([(host.to_owned(), without_span(responses))].into())
}

/// Returns a resend of a delivery, or of the newest delivery to an endpoint, with this status if it is given.
pub(super) fn resend(delivery_or_endpoint: &str, status: Option<DeliveryStatus>) -> Step {
    Step::Resend(Shorthand(Resend { delivery: name(delivery_or_endpoint), status, refused: None }))
}

pub(super) fn watcher(mode: Mode, asset: Asset, notices: NoticePolicy) -> Step {
    Step::Watcher(Watcher { asset: coin(asset), mode: self::mode(mode), notices })
}

pub(super) fn duration(micros: u64) -> Duration {
    Duration(Span::micros(micros))
}

/// The fee levels of ordinary payments.
pub(super) const FEES: [FeeLevel; 2] = [FeeLevel::Normal, FeeLevel::High];
