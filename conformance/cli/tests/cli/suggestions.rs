//! Invalid usage: each error states the problem, the allowed input and the next step.

use crate::{
    cases::check_cases,
    support::{printed, run, serve},
};

#[test]
fn an_error_states_the_remedy() {
    check_cases("usage");
}

#[test]
fn a_port_in_use_is_reported_with_a_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(directory.path(), &[]);
    let output = run(directory.path(), &["serve", "--listen", server.value("address")]);
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
    assert!(printed(&output).contains("another port with `--port`"), "{}", printed(&output));
}

#[test]
fn an_error_about_the_key_prefix_names_the_setting() {
    check_cases("other_prefix");
}
