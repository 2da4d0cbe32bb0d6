//! Wallets: no two charges share an address, independent of the order in which wallets are added and removed.

use reference_core::{
    asset::Asset,
    command::{BookCommand, Command, SettingsDraft, WalletInput},
    error::ApiError,
    mode::Mode,
};
use serde_json::json;

use super::test_service::{TestService, string};

/// Two addresses of SOL.
const FIRST: &str = "So11111111111111111111111111111111111111112";
const SECOND: &str = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";

impl TestService {
    /// Sets the SOL wallet to a list of addresses.
    fn set_addresses(&mut self, mode: Mode, addresses: &[&str]) -> Result<(), ApiError> {
        let addresses = addresses.iter().map(ToString::to_string).collect();
        let command = Command::SetWallet { asset: Asset::Sol, input: WalletInput::Addresses(addresses) };
        self.run_command(mode, command).map(drop)
    }

    /// Returns the deposit address of a new charge in SOL.
    #[track_caller]
    fn new_deposit_address(&mut self, mode: Mode) -> String {
        let key = if mode == Mode::Live { self.live_key.clone() } else { self.test_key.clone() };
        let charge = self.post_as(&key, "/v1/charges", &json!({"asset": "SOL", "amount": "10"})).data();
        string(&charge["deposit_address"])
    }

    /// Checks that a list is refused in the field `addresses`, and that the wallet does not change.
    #[track_caller]
    fn check_addresses_refused(&mut self, mode: Mode, addresses: &[&str]) {
        let error = self.set_addresses(mode, addresses).expect_err("an address belongs to another book");
        let expected =
            ApiError::field("addresses", "The addresses field is in use for another mode or account.");
        assert_eq!(error, expected);
        let assigned = self.new_deposit_address(mode);
        assert!(!addresses.contains(&assigned.as_str()), "{assigned} belongs to another book");
    }
}

#[test]
fn an_address_of_a_built_in_wallet_is_refused_in_the_other_mode() {
    let mut service = TestService::new();
    let address = service.new_deposit_address(Mode::Test);
    service.check_addresses_refused(Mode::Live, &[FIRST, &address]);
}

#[test]
fn an_address_of_a_charge_is_refused_in_the_other_mode_after_its_wallet_was_removed() {
    let mut service = TestService::new();
    service.set_addresses(Mode::Live, &[FIRST]).expect("the address is unused");
    assert_eq!(service.new_deposit_address(Mode::Live), FIRST);
    service
        .run_command(Mode::Live, BookCommand::RemoveWallet(Asset::Sol))
        .expect("the book has a SOL wallet");
    service.check_addresses_refused(Mode::Test, &[SECOND, FIRST]);
}

#[test]
fn an_unused_address_of_a_wallet_is_refused_in_the_other_mode() {
    let mut service = TestService::new();
    service.set_addresses(Mode::Live, &[FIRST]).expect("the address is unused");
    service.check_addresses_refused(Mode::Test, &[SECOND, FIRST]);
    service
        .run_command(Mode::Live, BookCommand::RemoveWallet(Asset::Sol))
        .expect("the book has a SOL wallet");
    service.check_addresses_refused(Mode::Test, &[FIRST]);
}

#[test]
fn the_account_shows_its_current_wallets_and_settings() {
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
        (&|service| service.set_addresses(Mode::Live, &[FIRST]), "Acme", true),
        (&|service| remove(service).and_then(|()| rename(service, "Bolt")), "Bolt", false),
        (&|service| rename(service, "Core"), "Core", false),
    ];
    for (change, name, accepts_sol) in changes {
        change(&mut service).expect("the change is valid");
        let object = service.get("/v1/account").json();
        let accepted = object["meta"]["accepted_assets"].as_array().expect("a list");
        assert_eq!((&object["data"]["name"], accepted.contains(&json!("SOL"))), (&json!(name), accepts_sol));
    }
}

#[test]
fn an_edited_address_list_skips_addresses_of_charges() {
    let mut service = TestService::new();
    service.set_addresses(Mode::Live, &[FIRST]).expect("the address is unused");
    assert_eq!(service.new_deposit_address(Mode::Live), FIRST);
    service.set_addresses(Mode::Live, &[FIRST, SECOND]).expect("the addresses belong to this book");
    assert_eq!(service.new_deposit_address(Mode::Live), SECOND);
}
