//! Changes of account settings and wallets.

use reference_core::{asset::Asset, mode::Mode, rng::RngStream};
use serde_json::{Value, json};

use super::{
    super::{DAY, HOUR, MINUTE, Plan, edge_cases::SECOND_ACCOUNT, steps},
    request_in,
};
use crate::script::step::{Step, Wallet};

/// Addresses for wallets. They have only capitals, so that no part of them is mistaken for a name of the scenario.
const ADDRESSES: [&str; 5] = [
    "ABCDEFGHJKLMNPQRSTUVWXYZABCDEFGHJKLMNPQRSTUV",
    "BCDEFGHJKLMNPQRSTUVWXYZABCDEFGHJKLMNPQRSTUVW",
    "CDEFGHJKLMNPQRSTUVWXYZABCDEFGHJKLMNPQRSTUVWX",
    "DEFGHJKLMNPQRSTUVWXYZABCDEFGHJKLMNPQRSTUVWXY",
    "EFGHJKLMNPQRSTUVWXYZABCDEFGHJKLMNPQRSTUVWXYZ",
];
/// The settings that can be removed.
const NULLABLE: [&str; 5] = ["logo_url", "website_url", "support_email", "support_phone", "business"];

/// The prefix variants of an extended public key, with the coins and the mode that accept each.
const KEYS: [(&str, &[&str], Mode); 10] = [
    (
        "xpub6BosfCnifzxcFwrSzQiqu2DBVTshkCXacvNsWGYJVVhhawA7d4R5WSWGFNbi8Aw6ZRc1brxMyWMzG3DSSSSoekkudhUd9yLb6qx39T9nMdj",
        &["BTC", "LTC", "BCH", "ETH", "USDT_TRON"],
        Mode::Live,
    ),
    (
        "ypub6We8xsTdpgW67F3ZpmWU77JgfS29gpX5Y2u6HfSBsW5ae2yLsiae8WAQGaZJ85b1y4ipMLYvSAiY9Kq1A8rpSzSWW3B3jtA5Na1gXzZ8iqF",
        &["BTC", "LTC"],
        Mode::Live,
    ),
    (
        "zpub6qUQGY8YyN3ZxYEgf8J6KCQBqQAbdSWaT9RK54L5FWTTh8na8NkCkZpYHnWt7zEwNhqd6p9Utq562cSZsqGqFE87NNsUKnyZeJ5KvbhfC8E",
        &["BTC", "LTC"],
        Mode::Live,
    ),
    (
        "Mtub2s5FRWffi7p6McKWRFWTxyQukELiSc3DfK757kBJEzvHNQc9Xj5Nx9eqdT5KnUzGZH8PwTwUHCMvFRC852xGHvDvoB4WQZv7s4n2SVWpEio",
        &["LTC"],
        Mode::Live,
    ),
    (
        "dgub8rKhExqKD6L2SBipHhXoL7W6jm2Comg6fNaQ5aYXoiVS98ZaZiwSBVaxcT6hW9LZZA7u3kefaWZwGmXU1B6YeacTfPt8gF7hTSEervsqwQA",
        &["DOGE"],
        Mode::Live,
    ),
    (
        "tpubDCBWBScQPGv4Xk3JSbhw6wYYpayMjb2eAYyArpbSqQTbLDpphHGAetB6VQgVeftLML8vDSUEWcC2xDi3qJJ3YCDChJDvqVzpgoYSuT52MhJ",
        &["BTC", "LTC", "BCH", "DOGE", "ETH"],
        Mode::Test,
    ),
    (
        "upub5DK5kCmyDxLAi4H6VLMyGkvfyZSMvLZ5sapDA5reMUa4RdiRs5vPeFXrBkix8SyLLWFbMSAgbXJLcBNkHMCmG3i72gPMQEt8Hfm6ydxa9N4",
        &["BTC", "LTC"],
        Mode::Test,
    ),
    (
        "vpub5Y9M3sStNdseZMUDKh9bUr2B9XaorxYanhLRwUkXjUwwUjXf7k5xGKBzCxgY8MdFk9NQ6umF4BetVTzK13cn4HPhu25mz9hcZPpkNEQ4Gjp",
        &["BTC", "LTC"],
        Mode::Test,
    ),
    (
        "ttub4dAk8Gxj3FWc2pJqUjmEPRe84FB8syJcqiaitrH59GMA4pvcHGgUbQjjwysNDVgtmemFZjWi9x6iRyFk5zHPvrCsAk8eWdN3bgt2BzY2sNk",
        &["LTC"],
        Mode::Test,
    ),
    (
        "tgub5R6y54Pi9KLrWeeG1TCaRADGJHXUBD5XByiXLNL8dstDywrPGjuXsk9ebgZMxdaTFHsrgQgx6gdwJjn4WyoTXjfn9XoVRjTprTLLPJGZvmU",
        &["DOGE"],
        Mode::Test,
    ),
];
/// The address types of keys whose prefix does not determine it.
const SCRIPTS: [&str; 3] = ["p2wpkh", "p2sh-p2wpkh", "p2pkh"];

/// Draws some settings of an account.
fn draw_settings(draw: &mut RngStream) -> Value {
    let mut body = json!({
        "name": "Acme & Söhne", "display_name": "Acme", "brand_color": "#00ff7f",
        "logo_url": "https://shop.example/logo.png", "website_url": "https://shop.example/?a=1&b=2",
        "support_email": "help@acme.example", "support_phone": "+49 30 1234",
        "members": ["owner@acme.example", "ann@example.com"],
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
    body
}

impl Plan {
    /// Plans changes of the account's settings.
    pub(super) fn add_settings(&mut self) {
        let mut draw = self.stream("account");
        for _ in 0..draw.below(3) {
            let at = draw.between(MINUTE, DAY);
            let mut change = request_in("PATCH", "/sandbox/accounts/acme", Mode::Live);
            change.body = Some(draw_settings(&mut draw));
            self.add(at, Step::Request(change));
            let mode = self.draw_mode(&mut draw);
            for read_at in [at - 1, at, at + 1] {
                self.add(read_at, Step::Request(request_in("GET", "/v1/account", mode)));
            }
        }
    }

    /// Plans an account that is created with settings, and reads of them by its key and in the dashboard.
    pub(super) fn add_account_with_settings(&mut self) {
        let mut draw = self.stream("branch");
        if draw.chance(1, 2) {
            return;
        }
        let (at, mode) = (draw.between(MINUTE, DAY), self.draw_mode(&mut draw));
        let mut body = draw_settings(&mut draw);
        // A new account has no settings to remove.
        if let Value::Object(map) = &mut body {
            map.retain(|_, value| !value.is_null());
        }
        (body["id"], body["type"]) =
            (json!("branch"), json!(["personal", "organization"][draw.below(2) as usize]));
        let mut create = request_in("POST", "/sandbox/accounts", mode);
        create.body = Some(body);
        create.save.insert("branch-key".to_owned(), format!("/keys/{mode}"));
        self.add(at, Step::Request(create));
        let mut read = request_in("GET", "/v1/account", mode);
        read.key = Some(steps::name("branch-key"));
        self.add(at + draw.below(HOUR), Step::Request(read));
        let page = format!("/sandbox/books/branch/{mode}/account");
        self.add(at + draw.below(HOUR), Step::Request(request_in("GET", &page, mode)));
    }

    /// Plans wallets of extended keys, their removal, and charges that get addresses of them.
    pub(super) fn add_key_wallets(&mut self) {
        let mut draw = self.stream("keys of wallets");
        if draw.chance(1, 2) {
            return;
        }
        let mut at = draw.between(HOUR, DAY);
        for n in 0..draw.between(2, 5) {
            at += draw.between(1, HOUR);
            let (mode, coin) = (self.draw_mode(&mut draw), self.draw_coin(&mut draw).code());
            let keys: Vec<&str> = KEYS
                .iter()
                .filter(|(_, coins, key_mode)| *key_mode == mode && coins.contains(&coin))
                .map(|(key, ..)| *key)
                .collect();
            let account = match self.second_account {
                Some(_) if draw.chance(1, 2) => SECOND_ACCOUNT,
                _ => "acme",
            };
            let mut body = json!({ "account": account, "asset": coin, "mode": mode.as_str() });
            let mut method = "DELETE";
            if !keys.is_empty() && draw.chance(4, 5) {
                method = "PUT";
                // In half of the cases the first key is chosen, so that accounts often share one.
                let index = if draw.chance(1, 2) { 0 } else { draw.below(keys.len() as u64) as usize };
                body["key"] = json!(keys[index]);
                if draw.chance(3, 4) {
                    body["script"] = json!(SCRIPTS[draw.below(3) as usize]);
                }
            }
            let mut change = request_in(method, "/sandbox/wallets", mode);
            change.body = Some(body);
            self.add(at, Step::Request(change));
            for nth in 0..draw.below(3) {
                let body = json!({ "asset": coin, "amount": "12.00", "currency": "EUR" });
                self.open_by_request(&format!("q{}-{nth}", n + 40), mode, at + nth * MINUTE, body);
            }
        }
    }

    /// Plans wallets that are removed, and address lists that are set, changed and used in both modes.
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
        // The lists overlap, so that wallets share addresses.
        let lists = [list(first, 1), list(first, 2), list(first + 1, 2), list(first + 3, 1)];
        let mut at = draw.between(HOUR, DAY);
        for n in 1..=draw.between(2, 6) {
            let mode = self.draw_mode(&mut draw);
            at += draw.between(1, HOUR);
            let asset = if draw.chance(1, 5) { self.draw_coin(&mut draw) } else { Asset::Sol };
            let addresses = (asset == Asset::Sol && draw.chance(3, 4))
                .then(|| lists[draw.below(lists.len() as u64) as usize].clone());
            self.add(at, wallet(asset, mode, addresses));
            for mode in Mode::ALL {
                self.add(at, Step::Request(request_in("GET", "/v1/account", mode)));
            }
            for nth in 0..draw.below(3) {
                let body = json!({ "asset": asset.code(), "amount": "12.00", "currency": "EUR" });
                let mut open = request_in("POST", "/v1/charges", mode);
                open.save.insert(format!("q{}-{nth}", n + 20), "/data/id".to_owned());
                self.plan_write_of(at + nth * MINUTE, open, body, &mut draw);
            }
        }
    }
}
