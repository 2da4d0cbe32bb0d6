//! Wrong usage: every mistake is answered with what is wrong, what is allowed and what to do next.

use crate::{
    cases::check_cases,
    support::{run, said, serve},
};

#[test]
fn a_mistake_is_answered_with_what_to_do() {
    check_cases("usage");
}

#[test]
fn a_port_in_use_is_told_with_a_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let served = serve(directory.path(), &[]);
    let output = run(directory.path(), &["serve", "--listen", served.word("address")]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("another port with `--port`"), "{}", said(&output));
}

#[test]
fn keys_of_another_prefix_name_the_setting() {
    check_cases("other_prefix");
}
