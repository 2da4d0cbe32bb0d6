//! The forms that create an object. If the world refuses a form, its input is shown again with the errors.

use askama::Template;
use reference_core::asset::Currency;

use super::{PageView, static_block};
use crate::{
    pages::dashboard::{context::PageContext, fragments},
    pages::objects::AccountView,
    refusal::Refusal,
};

/// The minimum number of line items in the invoice form.
const ITEM_ROWS_MIN: usize = 4;

/// The name of a field, and the texts beside it.
#[derive(Clone, Copy)]
struct FieldLabels {
    name: &'static str,
    label: &'static str,
    hint: &'static str,
}

fn labels(name: &'static str, label: &'static str, hint: &'static str) -> FieldLabels {
    FieldLabels { name, label, hint }
}

/// One field of a form.
struct FormField<'a> {
    name: &'static str,
    label: &'static str,
    hint: &'static str,
    control: Control<'a>,
    errors: Vec<&'a str>,
}

/// The control of a field.
enum Control<'a> {
    /// A line of text.
    Line {
        input_type: &'static str,
        inputmode: &'static str,
        example: &'static str,
        value: &'a str,
    },
    /// Several lines of text.
    Area(&'a str),
    /// A selection of one option.
    Select(Vec<SelectOption>),
    Checkboxes(Vec<Checkbox>),
}

struct SelectOption {
    value: String,
    label: String,
    is_selected: bool,
}

struct Checkbox {
    name: &'static str,
    value: String,
    label: String,
    is_checked: bool,
}

fn checkbox(name: &'static str, value: &str, label: &str) -> Checkbox {
    Checkbox { name, value: value.to_owned(), label: label.to_owned(), is_checked: false }
}

/// A line item of a new invoice.
struct ItemRow<'a> {
    item: &'a str,
    quantity: &'a str,
    unit_amount: &'a str,
    errors: Vec<&'a str>,
}

#[derive(Template)]
#[template(path = "dashboard/create.html")]
struct CreateForm<'a> {
    context: &'a PageContext,
    /// The path that the form is sent to, below account and mode.
    form: &'static str,
    about: &'static str,
    fields: Vec<FormField<'a>>,
    rows: Vec<ItemRow<'a>>,
    rows_errors: Vec<&'a str>,
    has_coins: bool,
    button: &'static str,
    curl: String,
}

/// Builder of the fields of one form.
struct FormBuilder<'a> {
    context: &'a PageContext,
    form: &'static str,
    account: &'a AccountView,
}

impl<'a> FormBuilder<'a> {
    fn field(&self, labels: FieldLabels, control: Control<'a>) -> FormField<'a> {
        let FieldLabels { name, label, hint } = labels;
        FormField { name, label, hint, control, errors: self.context.draft.errors(self.form, name) }
    }

    fn input(&self, name: &str) -> &'a str {
        self.context.draft.value(self.form, name)
    }

    fn line(&self, labels: FieldLabels, example: &'static str) -> FormField<'a> {
        let (input_type, inputmode) = match labels.name {
            "due_at" => ("date", "text"),
            "amount" | "min_amount" | "max_amount" => ("text", "decimal"),
            "customer_email" => ("text", "email"),
            _ => ("text", "text"),
        };
        let value = self.input(labels.name);
        self.field(labels, Control::Line { input_type, inputmode, example, value })
    }

    fn area(&self, labels: FieldLabels) -> FormField<'a> {
        self.field(labels, Control::Area(self.input(labels.name)))
    }

    fn select<'o>(
        &self,
        labels: FieldLabels,
        default: &str,
        options: impl IntoIterator<Item = (&'o str, &'o str)>,
    ) -> FormField<'a> {
        let input = self.input(labels.name);
        let selected = if input.is_empty() { default } else { input };
        let options = options.into_iter().map(|(value, label)| SelectOption {
            value: value.to_owned(),
            label: label.to_owned(),
            is_selected: value == selected,
        });
        self.field(labels, Control::Select(options.collect()))
    }

    fn checkboxes(&self, labels: FieldLabels, mut checkboxes: Vec<Checkbox>) -> FormField<'a> {
        for checkbox in &mut checkboxes {
            checkbox.is_checked = self.context.draft.is_selected(self.form, checkbox.name, &checkbox.value);
        }
        self.field(labels, Control::Checkboxes(checkboxes))
    }

    /// Returns the accepted coins as options.
    fn coins(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.account.accepted_assets.iter().map(|asset| (asset.code(), asset.code()))
    }

    fn currency(&self) -> FormField<'a> {
        let options = Currency::ALL.map(|currency| (currency.code(), currency.code()));
        let default = self.account.settings.default_currency.code();
        self.select(labels("currency", "Currency", ""), default, options)
    }

    /// Returns the line items from the refused form, and empty ones up to the minimum.
    fn rows(&self) -> Vec<ItemRow<'a>> {
        let draft = &self.context.draft;
        let values = |name| draft.values(self.form, name);
        let lines = values("item").into_iter().zip(values("quantity")).zip(values("unit_amount"));
        // Empty lines are left out, as in the request, because errors name lines by position.
        let mut rows: Vec<_> = lines
            .filter(|((item, _), price)| !item.trim().is_empty() || !price.trim().is_empty())
            .enumerate()
            .map(|(n, ((item, quantity), unit_amount))| ItemRow {
                item,
                quantity,
                unit_amount,
                errors: draft.errors(self.form, &format!("items.{n}")),
            })
            .collect();
        let empty = || ItemRow { item: "", quantity: "1", unit_amount: "", errors: Vec::new() };
        rows.resize_with(rows.len().max(ITEM_ROWS_MIN), empty);
        rows
    }
}

pub(super) async fn charge(context: &PageContext) -> Result<PageView, Refusal> {
    let account = context.read(|book| Ok(book.account())).await?;
    let builder = FormBuilder { context, form: "/charges", account: &account };
    let fields = vec![
        builder.line(labels("amount", "Amount", ""), "49.90"),
        builder.currency(),
        builder.select(labels("asset", "Paid in", ""), "", builder.coins()),
        builder.line(labels("customer_email", "Customer's e-mail", "optional"), "customer@shop.example"),
        builder.line(labels("metadata", "Order", "optional, stored as metadata order_id"), "A-1001"),
        builder.line(labels("description", "Description", "optional, for the customer"), "Blue mug"),
    ];
    let about =
        "A charge requests one amount of one coin from one customer. Its rate is locked for 30 minutes.";
    let form = CreateForm {
        context,
        form: builder.form,
        about,
        fields,
        rows: Vec::new(),
        rows_errors: Vec::new(),
        has_coins: !account.accepted_assets.is_empty(),
        button: "Open the charge",
        curl: context.curl_charge(),
    };
    Ok(PageView { state: None, title: "New charge".to_owned(), blocks: vec![static_block(&form)?] })
}

pub(super) async fn invoice(context: &PageContext) -> Result<PageView, Refusal> {
    let account = context.read(|book| Ok(book.account())).await?;
    let builder = FormBuilder { context, form: "/invoices", account: &account };
    let fields = vec![
        builder.line(labels("customer_name", "Customer", "optional"), "Ada Lovelace"),
        builder.line(labels("customer_email", "Customer's e-mail", "optional"), "customer@shop.example"),
        builder.currency(),
        builder.line(labels("amount", "Amount", "or lines below"), "160.00"),
        builder.line(labels("due_at", "Due", "optional"), ""),
        builder.area(labels("memo", "Note to the customer", "optional")),
        builder.checkboxes(
            labels("send_email", "E-mail", ""),
            vec![checkbox("send_email", "yes", "Send it at once")],
        ),
    ];
    let form = CreateForm {
        context,
        form: builder.form,
        about: "An invoice requests one amount from one customer, in the coin that the customer chooses.",
        fields,
        rows: builder.rows(),
        // Errors of the whole list; those of a line are shown beside it.
        rows_errors: context.draft.own_errors(builder.form, "items"),
        has_coins: !account.accepted_assets.is_empty(),
        button: "Issue the invoice",
        curl: context.curl_invoice(),
    };
    Ok(PageView { state: None, title: "New invoice".to_owned(), blocks: vec![static_block(&form)?] })
}

pub(super) async fn link(context: &PageContext) -> Result<PageView, Refusal> {
    let account = context.read(|book| Ok(book.account())).await?;
    let builder = FormBuilder { context, form: "/links", account: &account };
    let coins = builder.coins().map(|(asset, _)| checkbox("accepted_assets", asset, asset));
    let requests = vec![
        checkbox("collect_name", "yes", "Ask for a name"),
        checkbox("require_email", "yes", "Require an e-mail address"),
    ];
    let prices = [("fixed", "one for all"), ("open", "the customer chooses")];
    let fields = vec![
        builder.line(labels("title", "Title", ""), "A cup of coffee"),
        builder.select(labels("pricing_type", "Price", ""), "fixed", prices),
        builder.line(labels("amount", "Amount", "if it is one for all"), "3.50"),
        builder.currency(),
        builder.line(labels("min_amount", "At least", "if the customer chooses, optional"), "1.00"),
        builder.line(labels("max_amount", "At most", "if the customer chooses, optional"), "500.00"),
        builder.area(labels("description", "Description", "optional")),
        builder.checkboxes(labels("accepted_assets", "Coins", "all if none is checked"), coins.collect()),
        builder.checkboxes(labels("asks", "The customer", ""), requests),
    ];
    let form = CreateForm {
        context,
        form: builder.form,
        about: "A payment link is a page that any number of customers may pay, each by a charge of their own.",
        fields,
        rows: Vec::new(),
        rows_errors: Vec::new(),
        has_coins: !account.accepted_assets.is_empty(),
        button: "Create the link",
        curl: context.curl_link(),
    };
    Ok(PageView { state: None, title: "New payment link".to_owned(), blocks: vec![static_block(&form)?] })
}
