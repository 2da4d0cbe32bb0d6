//! Payment links of a book.

use super::{
    Book, BookContext,
    charges::{Order, require_field},
};
use crate::{
    call::{ChargeDraft, LinkDraft, PaymentChoice, PricingType},
    error::{ApiError, FieldErrors},
    id::{ChargeNo, Code, LinkNo},
    link::{Link, LinkTerms, Pricing},
    money::Fiat,
    status_index::StatusIndex,
};

impl Book {
    /// Creates a payment link and returns its number.
    pub(crate) fn create_link(
        &mut self,
        context: &BookContext<'_>,
        draft: LinkDraft,
    ) -> Result<LinkNo, ApiError> {
        let terms = merge_terms(None, draft, context)?;
        let no = LinkNo::from_index(self.links.len());
        let code = Code::draw(&self.rng_keys.link, u64::from(no.0));
        self.link_codes.insert(code, no);
        self.links.push(Link {
            code,
            terms,
            archived: false,
            views: 0,
            created_at: context.now,
            updated_at: context.now,
            charges: StatusIndex::default(),
        });
        Ok(no)
    }

    /// Changes a payment link; charges that were opened from it keep their terms.
    pub(crate) fn change_link(
        &mut self,
        context: &BookContext<'_>,
        no: LinkNo,
        draft: LinkDraft,
    ) -> Result<(), ApiError> {
        let link = &mut self.links[no.index()];
        let terms = merge_terms(Some(&link.terms), draft, context)?;
        if link.terms != terms {
            link.terms = terms;
            link.updated_at = context.now;
        }
        Ok(())
    }

    /// Archives or restores a link. Idempotent.
    pub(crate) fn set_archived(&mut self, context: &BookContext<'_>, no: LinkNo, archived: bool) {
        let link = &mut self.links[no.index()];
        if link.archived != archived {
            link.archived = archived;
            link.updated_at = context.now;
        }
    }

    /// Counts a view of the link's page.
    pub(crate) fn record_link_view(&mut self, no: LinkNo) {
        self.links[no.index()].views += 1;
    }

    /// Opens a charge that a customer chose on the link's page.
    pub(crate) fn pay_link(
        &mut self,
        context: &BookContext<'_>,
        no: LinkNo,
        choice: PaymentChoice,
    ) -> Result<ChargeNo, ApiError> {
        let draft = ChargeDraft {
            asset: choice.asset,
            amount: choice.amount,
            currency: None,
            link: None,
            customer: choice.customer,
            description: None,
            metadata: Vec::new(),
            custom_fields: choice.custom_fields,
        };
        let order = self.order_from_link(context, no, draft)?;
        self.open_charge(context, order)
    }

    /// Returns the order for a charge from this link, if the link accepts it now.
    pub(super) fn order_from_link(
        &self,
        context: &BookContext<'_>,
        no: LinkNo,
        draft: ChargeDraft,
    ) -> Result<Order, ApiError> {
        let link = self.link(no);
        let terms = &link.terms;
        let mut errors = FieldErrors::default();
        if terms.accepted_assets.as_ref().is_some_and(|assets| !assets.contains(&draft.asset)) {
            errors.add("asset", format!("The payment link does not accept {}.", draft.asset));
        }
        if draft.currency.is_some_and(|currency| currency != terms.currency) {
            errors.add("currency", format!("The payment link's price is in {}.", terms.currency));
        }
        let amount = match (&terms.pricing, draft.amount) {
            (Pricing::Fixed(price), None) => Some(*price),
            (Pricing::Fixed(price), Some(amount)) => {
                if amount != *price {
                    errors.add("amount", format!("The payment link's price is fixed at {price}."));
                }
                Some(*price)
            }
            (Pricing::Open { .. }, None) => {
                errors.add("amount", "The amount field is required.");
                None
            }
            (Pricing::Open { min, max, .. }, Some(amount)) => {
                if let Some(min) = min.filter(|min| amount < *min) {
                    errors.add("amount", format!("The amount field must be at least {min}."));
                }
                if let Some(max) = max.filter(|max| amount > *max) {
                    errors.add("amount", format!("The amount field must not be greater than {max}."));
                }
                Some(amount)
            }
        };
        require_field(
            &mut errors,
            terms.require_email && draft.customer.email.is_none(),
            "customer.email",
            "customer.email",
        );
        for question in terms.custom_fields.iter().filter(|question| question.required) {
            let is_answered = draft
                .custom_fields
                .iter()
                .any(|field| field.label == question.label && !field.value.is_empty());
            require_field(&mut errors, !is_answered, "custom_fields", &question.label);
        }
        for (index, field) in draft.custom_fields.iter().enumerate() {
            if draft.custom_fields[..index].iter().any(|earlier| earlier.label == field.label) {
                errors.add(
                    "custom_fields",
                    format!("The custom_fields field answers {:?} twice.", field.label),
                );
            } else if !terms.custom_fields.iter().any(|question| question.label == field.label) {
                errors.add("custom_fields", format!("The payment link does not ask for {:?}.", field.label));
            }
        }
        errors.into_result()?;
        if !link.accepts_payments(context.now) {
            return Err(ApiError::conflict("The payment link does not accept payments any more."));
        }
        Ok(Order {
            asset: draft.asset,
            amount: amount.expect("a missing amount was refused"),
            currency: terms.currency,
            link: Some(no),
            invoice: None,
            customer: draft.customer,
            description: draft.description.or_else(|| Some(terms.title.clone())),
            metadata: draft.metadata,
            custom_fields: draft.custom_fields,
        })
    }
}

/// Merges a draft into the terms of a link; `old` is `None` for a new link.
fn merge_terms(
    old: Option<&LinkTerms>,
    draft: LinkDraft,
    context: &BookContext<'_>,
) -> Result<LinkTerms, ApiError> {
    /// Returns the new value of a field, or the old one if none is given.
    fn new_or_old<T>(new: Option<T>, old: Option<&T>) -> Option<T>
    where
        T: Clone,
    {
        new.or_else(|| old.cloned())
    }
    /// Does the same for a field that may be null: `Some(None)` sets it to null.
    fn nullable<T: Clone>(new: Option<Option<T>>, old: Option<&Option<T>>) -> Option<T> {
        new_or_old(new, old).flatten()
    }
    let mut errors = FieldErrors::default();
    let title = new_or_old(draft.title, old.map(|o| &o.title));
    require_field(&mut errors, title.is_none(), "title", "title");
    let pricing = merge_pricing(
        old.map(|o| &o.pricing),
        draft.pricing_type,
        PriceDraft {
            amount: draft.amount,
            suggested: draft.suggested_amounts,
            min: draft.min_amount,
            max: draft.max_amount,
        },
        &mut errors,
    );
    if draft.expires_at.flatten().is_some_and(|end| end <= context.now) {
        errors.add("expires_at", "The expires_at field must be in the future.");
    }
    errors.into_result()?;
    Ok(LinkTerms {
        title: title.expect("a missing title was refused"),
        description: nullable(draft.description, old.map(|o| &o.description)),
        pricing: pricing.expect("a missing price was refused"),
        currency: new_or_old(draft.currency, old.map(|o| &o.currency))
            .unwrap_or(context.settings.default_currency),
        accepted_assets: nullable(draft.accepted_assets, old.map(|o| &o.accepted_assets)),
        success_url: nullable(draft.success_url, old.map(|o| &o.success_url)),
        cancel_url: nullable(draft.cancel_url, old.map(|o| &o.cancel_url)),
        collect_name: new_or_old(draft.collect_name, old.map(|o| &o.collect_name)).unwrap_or(false),
        require_email: new_or_old(draft.require_email, old.map(|o| &o.require_email)).unwrap_or(false),
        custom_fields: new_or_old(draft.custom_fields, old.map(|o| &o.custom_fields)).unwrap_or_default(),
        success_message: nullable(draft.success_message, old.map(|o| &o.success_message)),
        expires_at: nullable(draft.expires_at, old.map(|o| &o.expires_at)),
        max_payments: nullable(draft.max_payments, old.map(|o| &o.max_payments)),
    })
}

/// The prices to set on a link. The outer `None` leaves a price as it is, the inner one removes it.
struct PriceDraft {
    amount: Option<Option<Fiat>>,
    suggested: Option<Vec<Fiat>>,
    min: Option<Option<Fiat>>,
    max: Option<Option<Fiat>>,
}

/// Merges new prices into earlier pricing. Adds an error for each price that does not fit the pricing type.
fn merge_pricing(
    old: Option<&Pricing>,
    kind: Option<PricingType>,
    PriceDraft { amount, suggested, min, max }: PriceDraft,
    errors: &mut FieldErrors,
) -> Option<Pricing> {
    let was_open = matches!(old, Some(Pricing::Open { .. }));
    let kind = kind.unwrap_or(if was_open { PricingType::Open } else { PricingType::Fixed });
    let refuse_if_given = |errors: &mut FieldErrors, is_given: bool, field: &str, pricing: &str| {
        if is_given {
            errors.add(field, format!("The {field} field is only for links with {pricing} pricing."));
        }
    };
    match kind {
        PricingType::Fixed => {
            refuse_if_given(
                errors,
                suggested.is_some_and(|all| !all.is_empty()),
                "suggested_amounts",
                "open",
            );
            refuse_if_given(errors, min.flatten().is_some(), "min_amount", "open");
            refuse_if_given(errors, max.flatten().is_some(), "max_amount", "open");
            let old = match old {
                Some(Pricing::Fixed(price)) => Some(*price),
                _ => None,
            };
            let price = amount.unwrap_or(old);
            require_field(errors, price.is_none(), "amount", "amount");
            if price == Some(Fiat::ZERO) {
                errors.add("amount", "The amount field must be greater than 0.");
            }
            price.map(Pricing::Fixed)
        }
        PricingType::Open => {
            refuse_if_given(errors, amount.flatten().is_some(), "amount", "fixed");
            let (old_suggested, old_min, old_max) = match old {
                Some(Pricing::Open { suggested, min, max }) => (suggested.clone(), *min, *max),
                _ => (Vec::new(), None, None),
            };
            let (min, max) = (min.unwrap_or(old_min), max.unwrap_or(old_max));
            let suggested = suggested.unwrap_or(old_suggested);
            check_price_bounds(&suggested, min, max, errors);
            Some(Pricing::Open { suggested, min, max })
        }
    }
}

/// Checks the bounds of an open price: above zero, in order, and containing all suggestions.
fn check_price_bounds(suggested: &[Fiat], min: Option<Fiat>, max: Option<Fiat>, errors: &mut FieldErrors) {
    for (name, bound) in [("min_amount", min), ("max_amount", max)] {
        if bound == Some(Fiat::ZERO) {
            errors.add(name, format!("The {name} field must be greater than 0."));
        }
    }
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        errors.add("max_amount", format!("The max_amount field must be at least {min}."));
    }
    for (index, amount) in suggested.iter().enumerate() {
        let field = format!("suggested_amounts.{index}");
        if *amount == Fiat::ZERO {
            errors.add(field, format!("The suggested_amounts.{index} field must be greater than 0."));
        } else if let Some(min) = min.filter(|min| amount < min) {
            errors.add(field, format!("The suggested_amounts.{index} field must be at least {min}."));
        } else if let Some(max) = max.filter(|max| amount > max) {
            errors.add(field, format!("The suggested_amounts.{index} field must not be greater than {max}."));
        }
    }
}
