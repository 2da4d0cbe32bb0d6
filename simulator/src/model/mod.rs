//! An executable model of the specification and its contract, written apart from the service.
//!
//! It is told what a bystander wrote down: acts with their answers, what the watchers said, time. It says what must
//! have been recorded, and how charges and invoices must stand.

mod acts;
mod charge;
mod invoice;
mod link;
pub mod money;
mod repeat;
pub mod situation;

use std::collections::{BTreeMap, BTreeSet};

use reference_core::{asset::Asset, mode::Mode, time::Timestamp};

pub use self::{
    charge::{Charge, LOCK, Money, Situation, Status, Tale},
    invoice::{Invoice, Status as InvoiceStatus},
    situation::Troubles,
};
use self::{link::Link, repeat::Repeats};
use crate::{
    law::{Findings, Law, Shown},
    witness::{Record, Seen, What, Whose},
};

/// Something that must have been recorded.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its place among what was written down: twice the number of the entry that it came before, and one more if
    /// that entry led to it.
    pub place: usize,
    /// When.
    pub at: Timestamp,
    /// The account that it is of, by number.
    pub account: usize,
    /// In which mode.
    pub mode: Mode,
    /// The type of the event.
    pub kind: &'static str,
    /// The code of the charge or the invoice.
    pub subject: String,
    /// The transaction and the amount that the event names.
    pub details: Option<(String, u128)>,
    /// The status of the subject, once everything of that moment was done.
    pub status: &'static str,
    /// What the charge had received then; nothing for an invoice.
    pub received: Option<u128>,
    /// Where the chain stood for the charge.
    pub situation: Situation,
    /// What had gone wrong around it.
    pub troubles: Troubles,
}

impl Told {
    /// Whose it is.
    pub fn whose(&self) -> Whose {
        (self.account, self.mode)
    }
}

/// A charge of the model, and where it belongs.
#[derive(Clone, Debug)]
pub struct Owned {
    /// Its account, by number.
    pub account: usize,
    /// Its mode.
    pub mode: Mode,
    /// Its coin.
    pub asset: Asset,
    /// The charge.
    pub charge: Charge,
    /// Its invoice, by code.
    pub invoice: Option<String>,
    /// Its payment link, by code.
    pub link: Option<String>,
    /// What went wrong with its transfers.
    troubles: Troubles,
}

impl Owned {
    /// Whose it is.
    pub fn whose(&self) -> Whose {
        (self.account, self.mode)
    }
}

/// An account, as far as it matters here.
struct Account {
    id: String,
    /// Hundredths of a percent.
    tolerance: u32,
    /// Hundredths of a percent.
    threshold: u32,
    /// Who may receive mail in test mode.
    members: Vec<String>,
}

/// What the model knows from the start.
pub struct Beginning<'a> {
    /// The id of the account that the world started with.
    pub account: &'a str,
    /// The key of each mode that the world started with.
    pub keys: [(String, Mode); 2],
    /// Hundredths of a percent.
    pub tolerance: u32,
    /// Hundredths of a percent.
    pub threshold: u32,
    /// Who may receive mail in test mode.
    pub members: Vec<String>,
    /// What never changes of a charge, as it is shown.
    pub shown: &'a Shown,
}

/// How everything must be.
pub struct Model<'a> {
    shown: &'a Shown,
    bearers: BTreeMap<String, Whose>,
    /// In order of opening.
    accounts: Vec<Account>,
    /// When mail went out.
    mails: BTreeMap<Whose, Vec<Timestamp>>,
    links: BTreeMap<String, Link>,
    repeats: Repeats,
    rates: BTreeMap<(String, String), Option<String>>,
    addresses: BTreeMap<(Mode, Asset, &'a str), String>,
    /// When locks end, in order of opening.
    ends: BTreeSet<(Timestamp, usize, String)>,
    /// Every charge, by code.
    pub charges: BTreeMap<String, Owned>,
    /// Every invoice, by code, and whose it is.
    pub invoices: BTreeMap<String, (Whose, Invoice)>,
    /// What must have been recorded, in order.
    pub told: Vec<Told>,
    weather: situation::Weather,
    place: usize,
    /// What acts were answered otherwise than they must be.
    pub findings: Findings,
}

impl<'a> Model<'a> {
    /// Runs through everything that was written down, up to `now`.
    pub fn run(beginning: Beginning<'a>, record: &Record, now: Timestamp) -> Model<'a> {
        let Beginning { account, keys, tolerance, threshold, members, shown } = beginning;
        let mut model = Model {
            shown,
            bearers: keys.into_iter().map(|(key, mode)| (key, (0, mode))).collect(),
            accounts: vec![Account { id: account.to_owned(), tolerance, threshold, members }],
            mails: BTreeMap::new(),
            links: BTreeMap::new(),
            repeats: Repeats::default(),
            rates: BTreeMap::new(),
            addresses: BTreeMap::new(),
            ends: BTreeSet::new(),
            charges: BTreeMap::new(),
            invoices: BTreeMap::new(),
            told: Vec::new(),
            weather: situation::Weather::default(),
            place: 0,
            findings: Findings::default(),
        };
        for (number, Seen { at, what }) in record.seen.iter().enumerate() {
            model.place = 2 * number;
            model.run_out_locks(*at);
            model.place += 1;
            match what {
                What::Call(call) => model.act(*at, call),
                What::Told(notices) => model.hear(*at, notices),
                What::Restarted => model.weather.restarted(*at),
                What::Post(_) | What::Landed { .. } => {}
            }
        }
        model.place = 2 * record.seen.len();
        model.run_out_locks(now);
        model
    }

    /// The number of an account, by its id.
    pub fn account(&self, id: &str) -> Option<usize> {
        self.accounts.iter().position(|account| account.id == id)
    }

    /// Whose a charge or an invoice is, by its code.
    pub fn owner(&self, code: &str) -> Option<Whose> {
        let charge = self.charges.get(code).map(Owned::whose);
        charge.or_else(|| self.invoices.get(code).map(|(whose, _)| *whose))
    }

    /// Whose key a call shows.
    fn asker(&self, call: &crate::witness::Call) -> Option<Whose> {
        call.bearer.as_ref().and_then(|bearer| self.bearers.get(bearer)).copied()
    }

    fn run_out_locks(&mut self, now: Timestamp) {
        while let Some((end, ..)) = self.ends.first()
            && *end <= now
        {
            let (end, _, code) = self.ends.pop_first().expect("there is a first");
            let mut tales = Vec::new();
            self.owned(&code).charge.run_out(end, &mut tales);
            self.tell(end, &code, tales);
        }
    }

    fn owned(&mut self, code: &str) -> &mut Owned {
        self.charges.get_mut(code).expect("the model knows the charges it names")
    }

    /// What watchers said in one breath: each charge judges its part together.
    fn hear(&mut self, now: Timestamp, notices: &[reference_core::sighting::Sighting]) {
        let mut parts: Vec<(String, Vec<&reference_core::sighting::Sighting>)> = Vec::new();
        for notice in notices {
            let Some(code) = self.addresses.get(&(notice.mode, notice.asset, notice.address.as_str())) else {
                continue;
            };
            match parts.iter_mut().find(|(known, _)| known == code) {
                Some((_, part)) => part.push(notice),
                None => parts.push((code.clone(), vec![notice])),
            }
        }
        for (code, part) in parts {
            let owned = self.owned(&code);
            // The service counts in 10⁻¹⁸; a notice is a whole number of the coin's units.
            let unit = 10_u128.pow(18) / money::units_per_coin(owned.asset);
            let tales = owned.charge.hear(now, &part, unit);
            let tags = part
                .iter()
                .fold(Troubles::default(), |tags, notice| tags.with(self.weather.of(&notice.txid)));
            self.owned(&code).troubles = self.charges[&code].troubles.with(tags);
            self.tell(now, &code, tales);
        }
    }

    /// What a charge has to tell, as events.
    fn tell(&mut self, at: Timestamp, code: &str, tales: Vec<Tale>) {
        for tale in tales {
            let (kind, details) = match tale {
                Tale::Detected { txid, units } => ("charge.payment_detected", Some((txid, units))),
                Tale::Paid { txid, units } => ("charge.paid", Some((txid, units))),
                Tale::Short { txid, units } => ("charge.underpaid", Some((txid, units))),
                Tale::Late { txid, units } => ("charge.late_payment", Some((txid, units))),
                Tale::Expired => ("charge.expired", None),
            };
            self.event_of_charge(at, code, kind, details);
            if kind == "charge.paid"
                && let Some(invoice) = self.charges[code].invoice.clone()
            {
                self.settle(at, &invoice);
            }
        }
    }

    fn event_of_charge(
        &mut self,
        at: Timestamp,
        code: &str,
        kind: &'static str,
        details: Option<(String, u128)>,
    ) {
        let Owned { account, mode, asset, charge, troubles, .. } = &self.charges[code];
        let told = Told {
            place: self.place,
            at,
            account: *account,
            mode: *mode,
            kind,
            subject: code.to_owned(),
            details,
            status: charge.status.as_str(),
            received: Some(charge.received()),
            situation: charge.situation(),
            troubles: troubles.with(self.weather.around(at, *mode, *asset)),
        };
        self.told.push(told);
    }

    fn event_of_invoice(&mut self, at: Timestamp, code: &str, kind: &'static str) {
        let ((account, mode), invoice) = &self.invoices[code];
        let newest = invoice.charges.last().map(|code| &self.charges[code]);
        let told = Told {
            place: self.place,
            at,
            account: *account,
            mode: *mode,
            kind,
            subject: code.to_owned(),
            details: None,
            status: invoice.status.as_str(),
            received: None,
            situation: newest.map_or(Situation::Nothing, |owned| owned.charge.situation()),
            troubles: newest.map_or(self.weather.everywhere(at), |owned| {
                owned.troubles.with(self.weather.around(at, *mode, owned.asset))
            }),
        };
        self.told.push(told);
    }

    /// An invoice settles once; what still waits for money, and has seen none, is called off.
    fn settle(&mut self, at: Timestamp, code: &str) {
        let (_, invoice) = self.invoices.get_mut(code).expect("a charge names an invoice that is there");
        if invoice.status != InvoiceStatus::Open {
            return;
        }
        invoice.status = InvoiceStatus::Paid;
        invoice.paid_at = Some(at);
        for charge in invoice.charges.clone() {
            if self.charges.contains_key(&charge) && self.owned(&charge).charge.cancel() {
                self.event_of_charge(at, &charge, "charge.canceled", None);
            }
        }
        self.event_of_invoice(at, code, "invoice.paid");
    }

    /// An answer that the state of things demands.
    fn must_answer(&mut self, at: Timestamp, act: &str, about: &str, expected: u16, actual: u16) {
        self.findings.check(Law::Edges, Some(at), || {
            (expected != actual).then(|| {
                let shape = format!("{act} is answered {actual}, not {expected}");
                (shape, format!("{act} {about} at {at}"))
            })
        });
    }
}
