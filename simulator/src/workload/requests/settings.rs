//! Changes of account settings and wallets.

use reference_core::{asset::Asset, mode::Mode};
use serde_json::{Value, json};

use super::{
    super::{DAY, HOUR, MINUTE, Plan, steps},
    request,
};
use crate::script::step::{Step, Wallet};

/// Addresses for lists. They have only capitals, so that nothing in them is renamed as a name of the scenario.
const ADDRESSES: [&str; 5] = [
    "ABCDEFGHJKLMNPQRSTUVWXYZABCDEFGHJKLMNPQRSTUV",
    "BCDEFGHJKLMNPQRSTUVWXYZABCDEFGHJKLMNPQRSTUVW",
    "CDEFGHJKLMNPQRSTUVWXYZABCDEFGHJKLMNPQRSTUVWX",
    "DEFGHJKLMNPQRSTUVWXYZABCDEFGHJKLMNPQRSTUVWXY",
    "EFGHJKLMNPQRSTUVWXYZABCDEFGHJKLMNPQRSTUVWXYZ",
];
/// The settings that can be removed.
const NULLABLE: [&str; 5] = ["logo_url", "website_url", "support_email", "support_phone", "business"];

impl Plan {
    /// Plans changes of the account's settings.
    pub(super) fn add_settings(&mut self) {
        let mut draw = self.stream("account");
        for _ in 0..draw.below(3) {
            let at = draw.between(MINUTE, DAY);
            let mut body = json!({
                "name": "Acme & Söhne", "display_name": "Acme", "brand_color": "#00ff7f",
                "logo_url": "https://shop.example/logo.png", "website_url": null, "support_email": "help@acme.example",
                "support_phone": "+49 30 1234", "members": ["owner@acme.example", "ann@example.com"],
                "business": { "type": "company", "tax_id": "DE 1", "address": { "city": "Berlin", "country": "DE" } },
                "default_currency": if draw.chance(1, 3) { "USD" } else { "EUR" },
            });
            if let Value::Object(map) = &mut body {
                map.retain(|_, _| draw.chance(1, 3));
                for name in NULLABLE {
                    if draw.chance(1, 5) {
                        map.insert(name.to_owned(), Value::Null);
                    }
                }
            }
            let mut change = request("PATCH", "/sandbox/accounts/acme", Mode::Live);
            change.body = Some(body);
            self.add(at, Step::Request(change));
            let mode = self.pick_mode(&mut draw);
            for moment in [at - 1, at, at + 1] {
                self.add(moment, Step::Request(request("GET", "/v1/account", mode)));
            }
        }
    }

    /// Plans wallets that are removed, and lists that are set, edited and used in both modes.
    pub(super) fn add_wallets(&mut self) {
        let mut draw = self.stream("wallets");
        if draw.chance(1, 2) {
            return;
        }
        let wallet = |asset: Asset, mode: Mode, addresses: Option<Vec<String>>| {
            let remove = addresses.is_none();
            let (asset, mode) = (steps::coin(asset), steps::mode(mode));
            Step::Wallet(Wallet { asset, mode, key: None, script: None, addresses, remove, refused: None })
        };
        let first = draw.below(ADDRESSES.len() as u64) as usize;
        let list = |first: usize, count: usize| -> Vec<String> {
            ADDRESSES.iter().cycle().skip(first).take(count).map(|address| (*address).to_owned()).collect()
        };
        // A few lists that overlap, so that they meet.
        let lists = [list(first, 1), list(first, 2), list(first + 1, 2), list(first + 3, 1)];
        let mut at = draw.between(HOUR, DAY);
        for n in 1..=draw.between(2, 6) {
            let mode = self.pick_mode(&mut draw);
            at += draw.between(1, HOUR);
            let asset = if draw.chance(1, 5) { self.pick_coin(&mut draw) } else { Asset::Sol };
            let addresses = (asset == Asset::Sol && draw.chance(3, 4))
                .then(|| lists[draw.below(lists.len() as u64) as usize].clone());
            self.add(at, wallet(asset, mode, addresses));
            for mode in Mode::ALL {
                self.add(at, Step::Request(request("GET", "/v1/account", mode)));
            }
            for opened in 0..draw.below(3) {
                let body = json!({ "asset": asset.code(), "amount": "12.00", "currency": "EUR" });
                let mut open = request("POST", "/v1/charges", mode);
                open.save.insert(format!("q{}-{opened}", n + 20), "/data/id".to_owned());
                self.write_body(at + opened * MINUTE, open, body, &mut draw);
            }
        }
    }
}
