//! Webhook endpoints, and the rule that their address must be public.

pub mod address_rule;
