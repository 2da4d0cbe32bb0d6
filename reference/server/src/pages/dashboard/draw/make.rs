//! The forms that create an object. If the world refuses one, its input is shown again with the errors.

use askama::Template;
use reference_core::asset::Currency;

use super::{PageView, static_block};
use crate::{
    pages::dashboard::{context::PageContext, fragments},
    pages::objects::AccountView,
    refusal::Refusal,
};

/// The number of invoice lines in the form; the API allows more.
const ITEMS_SHOWN: usize = 4;

/// One field of a form.
struct FormField<'a> {
    name: &'static str,
    label: &'static str,
    hint: &'static str,
    control: Control<'a>,
    wrong: Vec<&'a str>,
}

/// The control of a field.
enum Control<'a> {
    /// A line of text.
    Line { kind: &'static str, inputmode: &'static str, sample: &'static str, value: &'a str },
    /// Several lines of text.
    Area(&'a str),
    /// A selection of one option: value, label, `true` if selected.
    Select(Vec<(String, String, bool)>),
    /// Checkboxes: name, value, label, `true` if ticked.
    Boxes(Vec<(&'static str, String, String, bool)>),
}

/// A line of a new invoice.
struct ItemRow<'a> {
    item: &'a str,
    quantity: &'a str,
    unit_amount: &'a str,
    wrong: Vec<&'a str>,
}

#[derive(Template)]
#[template(path = "dashboard/make.html")]
struct MakeForm<'a> {
    context: &'a PageContext,
    form: &'static str,
    about: &'static str,
    fields: Vec<FormField<'a>>,
    rows: Vec<ItemRow<'a>>,
    rows_wrong: Vec<&'a str>,
    has_coins: bool,
    button: &'static str,
    curl: String,
}

/// Builds the fields of one form.
struct Fields<'a> {
    context: &'a PageContext,
    form: &'static str,
    account: &'a AccountView,
}

impl<'a> Fields<'a> {
    fn field(
        &self,
        (name, label, hint): (&'static str, &'static str, &'static str),
        control: Control<'a>,
    ) -> FormField<'a> {
        FormField { name, label, hint, control, wrong: self.context.draft.wrong(self.form, name) }
    }

    fn input(&self, name: &str) -> &'a str {
        self.context.draft.typed(self.form, name)
    }

    fn line(
        &self,
        labels: (&'static str, &'static str, &'static str),
        sample: &'static str,
    ) -> FormField<'a> {
        let (kind, inputmode) = match labels.0 {
            "due_at" => ("date", "text"),
            "amount" | "min_amount" | "max_amount" => ("text", "decimal"),
            "customer_email" => ("text", "email"),
            _ => ("text", "text"),
        };
        self.field(labels, Control::Line { kind, inputmode, sample, value: self.input(labels.0) })
    }

    fn area(&self, labels: (&'static str, &'static str, &'static str)) -> FormField<'a> {
        self.field(labels, Control::Area(self.input(labels.0)))
    }

    fn select<'o>(
        &self,
        labels: (&'static str, &'static str, &'static str),
        first: &str,
        options: impl IntoIterator<Item = (&'o str, &'o str)>,
    ) -> FormField<'a> {
        let typed = self.input(labels.0);
        let chosen = if typed.is_empty() { first } else { typed };
        let options = options.into_iter();
        let options = options.map(|(value, label)| (value.to_owned(), label.to_owned(), value == chosen));
        self.field(labels, Control::Select(options.collect()))
    }

    fn boxes(
        &self,
        labels: (&'static str, &'static str, &'static str),
        boxes: Vec<(&'static str, String, String)>,
    ) -> FormField<'a> {
        let ticked = boxes.into_iter().map(|(name, value, label)| {
            let ticked = self.context.draft.chosen(self.form, name, &value);
            (name, value, label, ticked)
        });
        self.field(labels, Control::Boxes(ticked.collect()))
    }

    fn coins(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.account.accepted.iter().map(|asset| (asset.code(), asset.code()))
    }

    fn currency(&self) -> FormField<'a> {
        let all = Currency::ALL.map(|currency| (currency.code(), currency.code()));
        self.select(("currency", "Currency", ""), self.account.settings.default_currency.code(), all)
    }

    /// Returns the typed lines of the invoice, and empty ones.
    fn rows(&self) -> Vec<ItemRow<'a>> {
        let draft = &self.context.draft;
        let of = |name| draft.values(self.form, name);
        let typed = of("item").into_iter().zip(of("quantity")).zip(of("unit_amount"));
        // Empty lines are left out, as in the request, because errors name lines by position.
        let mut rows: Vec<_> = typed
            .filter(|((item, _), price)| !item.trim().is_empty() || !price.trim().is_empty())
            .enumerate()
            .map(|(n, ((item, quantity), unit_amount))| ItemRow {
                item,
                quantity,
                unit_amount,
                wrong: draft.wrong(self.form, &format!("items.{n}")),
            })
            .collect();
        let empty = || ItemRow { item: "", quantity: "1", unit_amount: "", wrong: Vec::new() };
        rows.resize_with(rows.len().max(ITEMS_SHOWN), empty);
        rows
    }
}

pub(super) async fn charge(context: &PageContext) -> Result<PageView, Refusal> {
    let account = context.read(|book| Ok(book.account())).await?;
    let f = Fields { context, form: "/charges", account: &account };
    let fields = vec![
        f.line(("amount", "Amount", ""), "49.90"),
        f.currency(),
        f.select(("asset", "Paid in", ""), "", f.coins()),
        f.line(("customer_email", "Customer's e-mail", "optional"), "customer@shop.example"),
        f.line(("metadata", "Order", "optional, stored as metadata order_id"), "A-1001"),
        f.line(("description", "Description", "optional, for the customer"), "Blue mug"),
    ];
    let about = "A charge asks one customer for one amount of one coin. Its rate is locked for 30 minutes.";
    let form = MakeForm {
        context,
        form: f.form,
        about,
        fields,
        rows: Vec::new(),
        rows_wrong: Vec::new(),
        has_coins: !account.accepted.is_empty(),
        button: "Open the charge",
        curl: context.curl_charge(),
    };
    Ok(PageView { state: None, title: "New charge".to_owned(), blocks: vec![static_block(&form)?] })
}

pub(super) async fn invoice(context: &PageContext) -> Result<PageView, Refusal> {
    let account = context.read(|book| Ok(book.account())).await?;
    let f = Fields { context, form: "/invoices", account: &account };
    let fields = vec![
        f.line(("customer_name", "Customer", "optional"), "Ada Lovelace"),
        f.line(("customer_email", "Customer's e-mail", "optional"), "customer@shop.example"),
        f.currency(),
        f.line(("amount", "Amount", "or lines below"), "160.00"),
        f.line(("due_at", "Due", "optional"), ""),
        f.area(("memo", "Note to the customer", "optional")),
        f.boxes(
            ("send_email", "E-mail", ""),
            vec![("send_email", "yes".to_owned(), "Send it at once".to_owned())],
        ),
    ];
    let form = MakeForm {
        context,
        form: f.form,
        about: "An invoice asks one customer for one amount, in the coin that the customer chooses.",
        fields,
        rows: f.rows(),
        // Errors of the whole list; those of a line are shown beside it.
        rows_wrong: context.draft.own_errors(f.form, "items"),
        has_coins: !account.accepted.is_empty(),
        button: "Issue the invoice",
        curl: context.curl_invoice(),
    };
    Ok(PageView { state: None, title: "New invoice".to_owned(), blocks: vec![static_block(&form)?] })
}

pub(super) async fn link(context: &PageContext) -> Result<PageView, Refusal> {
    let account = context.read(|book| Ok(book.account())).await?;
    let f = Fields { context, form: "/links", account: &account };
    let coins = f.coins().map(|(asset, _)| ("accepted_assets", asset.to_owned(), asset.to_owned()));
    let asks = [("collect_name", "Ask for a name"), ("require_email", "Require an e-mail address")];
    let asks = asks.map(|(name, label)| (name, "yes".to_owned(), label.to_owned()));
    let prices = [("fixed", "one for all"), ("open", "the customer chooses")];
    let fields = vec![
        f.line(("title", "Title", ""), "A cup of coffee"),
        f.select(("pricing_type", "Price", ""), "fixed", prices),
        f.line(("amount", "Amount", "if it is one for all"), "3.50"),
        f.currency(),
        f.line(("min_amount", "At least", "if the customer chooses, optional"), "1.00"),
        f.line(("max_amount", "At most", "if the customer chooses, optional"), "500.00"),
        f.area(("description", "Description", "optional")),
        f.boxes(("accepted_assets", "Coins", "all if none is ticked"), coins.collect()),
        f.boxes(("asks", "The customer", ""), asks.into()),
    ];
    let form = MakeForm {
        context,
        form: f.form,
        about: "A payment link is a page that any number of customers may pay, each by a charge of their own.",
        fields,
        rows: Vec::new(),
        rows_wrong: Vec::new(),
        has_coins: !account.accepted.is_empty(),
        button: "Create the link",
        curl: context.curl_link(),
    };
    Ok(PageView { state: None, title: "New payment link".to_owned(), blocks: vec![static_block(&form)?] })
}
