//! Wallets: no two charges share an address, in whatever order wallets are added and removed.

use reference_core::{
    asset::Asset,
    command::{BookCommand, Command, Payout, SettingsDraft},
    error::ApiError,
    mode::Mode,
};
use serde_json::json;

use super::test_service::{TestService, string};

const FIRST: &str = "So11111111111111111111111111111111111111112";
const SECOND: &str = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";

impl TestService {
    fn list_addresses(&mut self, mode: Mode, addresses: &[&str]) -> Result<(), ApiError> {
        let addresses = addresses.iter().map(ToString::to_string).collect();
        let act = Command::SetWallet { asset: Asset::Sol, payout: Payout::Addresses(addresses) };
        self.run_command(mode, act).map(drop)
    }

    /// Returns the deposit address of a new charge in SOL.
    #[track_caller]
    fn deposit_address(&mut self, mode: Mode) -> String {
        let key = if mode == Mode::Live { self.live.clone() } else { self.test.clone() };
        let charge = self.post_as(&key, "/v1/charges", &json!({"asset": "SOL", "amount": "10"})).data();
        string(&charge["deposit_address"])
    }

    /// Checks that a list is refused in the field `addresses`, and that the wallet does not change.
    #[track_caller]
    fn refuses_addresses(&mut self, mode: Mode, addresses: &[&str]) {
        let error = self.list_addresses(mode, addresses).expect_err("an address in it is another book's");
        let own = ApiError::field("addresses", "The addresses field is in use for another mode or account.");
        assert_eq!(error, own);
        let handed_out = self.deposit_address(mode);
        assert!(!addresses.contains(&handed_out.as_str()), "{handed_out} is another book's");
    }
}

#[test]
fn an_address_of_a_built_in_wallet_is_not_taken_by_the_other_mode() {
    let mut service = TestService::new();
    let address = service.deposit_address(Mode::Test);
    service.refuses_addresses(Mode::Live, &[FIRST, &address]);
}

#[test]
fn an_address_stays_with_its_charge_when_its_list_is_removed() {
    let mut service = TestService::new();
    service.list_addresses(Mode::Live, &[FIRST]).expect("the address is unused");
    assert_eq!(service.deposit_address(Mode::Live), FIRST);
    service.run_command(Mode::Live, BookCommand::RemoveWallet(Asset::Sol)).expect("there is a wallet");
    service.refuses_addresses(Mode::Test, &[SECOND, FIRST]);
}

#[test]
fn a_wallet_is_not_taken_by_the_other_mode_though_no_charge_has_an_address_of_it() {
    let mut service = TestService::new();
    service.list_addresses(Mode::Live, &[FIRST]).expect("the address is unused");
    service.refuses_addresses(Mode::Test, &[SECOND, FIRST]);
    service.run_command(Mode::Live, BookCommand::RemoveWallet(Asset::Sol)).expect("there is a wallet");
    service.refuses_addresses(Mode::Test, &[FIRST]);
}

#[test]
fn the_account_shows_its_wallets_and_settings_as_they_are() {
    let mut service = TestService::new();
    let remove = |service: &mut TestService| {
        service.run_command(Mode::Live, BookCommand::RemoveWallet(Asset::Sol)).map(drop)
    };
    let rename = |service: &mut TestService, name: &str| {
        service.change_settings(SettingsDraft { name: Some(name.to_owned()), ..SettingsDraft::default() });
        Ok(())
    };
    type Change<'a> = &'a dyn Fn(&mut TestService) -> Result<(), ApiError>;
    let changes: [(Change<'_>, &str, bool); 5] = [
        (&|_| Ok(()), "Acme", true),
        (&remove, "Acme", false),
        (&|service| service.list_addresses(Mode::Live, &[FIRST]), "Acme", true),
        (&|service| remove(service).and_then(|()| rename(service, "Bolt")), "Bolt", false),
        (&|service| rename(service, "Core"), "Core", false),
    ];
    for (change, name, takes_sol) in changes {
        change(&mut service).expect("the owner may");
        let shown = service.get("/v1/account").json();
        let accepted = shown["meta"]["accepted_assets"].as_array().expect("a list");
        assert_eq!((&shown["data"]["name"], accepted.contains(&json!("SOL"))), (&json!(name), takes_sol));
    }
}

#[test]
fn an_edited_list_leaves_out_what_a_charge_has() {
    let mut service = TestService::new();
    service.list_addresses(Mode::Live, &[FIRST]).expect("the address is unused");
    assert_eq!(service.deposit_address(Mode::Live), FIRST);
    service.list_addresses(Mode::Live, &[FIRST, SECOND]).expect("it is the same book's");
    assert_eq!(service.deposit_address(Mode::Live), SECOND);
}
