//! Tests of the address rule. The tables have the typed or resolved address on the left, the verdict on the right.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

/// Checks URLs. On the right: the normalized form of an accepted URL, or the name of the rule that refuses it.
#[track_caller]
fn assert_urls(table: &[(&str, &str)]) {
    for (typed, expected) in table {
        let verdict = match parse_endpoint_url(typed) {
            Ok(url) => url.to_string(),
            Err(refusal) => refusal.rule().to_owned(),
        };
        assert_eq!(verdict, *expected, "typed: {typed}");
    }
}

/// Checks IP addresses. On the right: `public`, or the name of the rule that refuses the address.
#[track_caller]
fn assert_addresses(table: &[(&str, &str)]) {
    for (text, expected) in table {
        let ip: IpAddr = text.parse().expect("the table holds addresses");
        assert_eq!(rule_of(ip), *expected, "address: {text}");
    }
}

fn rule_of(ip: IpAddr) -> &'static str {
    match check_address(ip) {
        Ok(()) => "public",
        Err(refusal) => refusal.rule(),
    }
}

#[test]
fn public_urls_are_accepted_and_normalized() {
    assert_urls(&[
        ("https://shop.example", "https://shop.example/"),
        ("https://shop.example/hook?from=pay&to=me", "https://shop.example/hook?from=pay&to=me"),
        ("HTTPS://Shop.Example/Hook", "https://shop.example/Hook"),
        ("https://shop.example:443/", "https://shop.example/"),
        ("https://shop.example:8443/", "https://shop.example:8443/"),
        ("https://shop.example:65535/", "https://shop.example:65535/"),
        ("https://shop.example./hook", "https://shop.example/hook"),
        ("https:///shop.example/hook", "https://shop.example/hook"),
        ("https://shop.example/a/../b", "https://shop.example/b"),
        ("https://shop.example/café", "https://shop.example/caf%C3%A9"),
        ("https://shop.example/user@host", "https://shop.example/user@host"),
        ("https://shop.example?to=a@b", "https://shop.example/?to=a@b"),
        ("https://a_b.shop.example/", "https://a_b.shop.example/"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"),
        ("https://faß.example/", "https://xn--fa-hia.example/"),
        ("https://店。example/", "https://xn--hxt.example/"),
        ("https://%73hop.example/", "https://shop.example/"),
        ("https://1and1.example/", "https://1and1.example/"),
        ("https://93.184.215.14/hook", "https://93.184.215.14/hook"),
        ("https://0x5db8d70e/", "https://93.184.215.14/"),
        ("https://[2606:4700:4700::1111]/hook", "https://[2606:4700:4700::1111]/hook"),
        ("https://[2606:4700:4700:0:0:0:0:1111]:8443/", "https://[2606:4700:4700::1111]:8443/"),
        ("https://[::ffff:8.8.8.8]/", "https://[::ffff:8.8.8.8]/"),
    ]);
}

#[test]
fn urls_must_be_https_without_user_info_fragment_or_port_zero() {
    assert_urls(&[
        ("http://shop.example/", "not_https"),
        ("ftp://shop.example/", "not_https"),
        ("file:///etc/passwd", "not_https"),
        ("javascript:alert(1)", "not_https"),
        ("gopher://shop.example/", "not_https"),
        ("localhost:3000", "not_https"),
        ("https://user@shop.example/", "user_info"),
        ("https://user:secret@shop.example/", "user_info"),
        ("https://:secret@shop.example/", "user_info"),
        ("https://@shop.example/", "user_info"),
        ("https://:@shop.example/", "user_info"),
        ("https://shop.example@127.0.0.1/", "user_info"),
        ("https://shop.example%40x@127.0.0.1/", "user_info"),
        ("https://shop.example/#top", "fragment"),
        ("https://shop.example/#", "fragment"),
        ("https://shop.example:0/", "port_zero"),
        ("https://shop.example:65536/", "unreadable"),
        ("https://shop.example:-1/", "unreadable"),
        ("https://shop.example:https/", "unreadable"),
    ]);
}

#[test]
fn ambiguous_characters_are_refused() {
    assert_urls(&[
        (" https://shop.example/", "character"),
        ("https://shop.example/ ", "character"),
        ("https://shop.example/a b", "character"),
        ("https://shop.exa\tmple/", "character"),
        ("https://shop.example\r\nX-Evil: 1/", "character"),
        ("https://shop.example\u{0}.evil/", "character"),
        ("https://shop.example/\u{a0}", "character"),
        ("https:\\\\shop.example/", "character"),
        ("https://shop.example\\@127.0.0.1/", "character"),
        ("https://shop%00.example/", "unreadable"),
        ("https://shop%2eexample%2f/", "unreadable"),
    ]);
}

#[test]
fn urls_without_a_valid_host_are_refused() {
    assert_urls(&[
        ("", "unreadable"),
        ("shop.example/hook", "unreadable"),
        ("//shop.example/hook", "unreadable"),
        ("https:", "unreadable"),
        ("https://", "unreadable"),
        ("https://?q", "unreadable"),
        ("https://:443/", "unreadable"),
        ("https://./", "bad_name"),
        ("https://../", "bad_name"),
        ("https://.shop.example/", "bad_name"),
        ("https://shop..example/", "bad_name"),
        ("https://shop.example../", "bad_name"),
        ("https://127.0.0.1../", "bad_name"),
        ("https://shop.127/", "unreadable"),
        ("https://256.1.1.1/", "unreadable"),
        ("https://1.2.3.4.5/", "unreadable"),
        ("https://09.1.1.1/", "unreadable"),
        ("https://4294967296/", "unreadable"),
        ("https://[::1/", "unreadable"),
        ("https://[1.2.3.4]/", "unreadable"),
        ("https://::1/", "unreadable"),
        ("https://xn--a/", "unreadable"),
    ]);
}

#[test]
fn urls_and_host_names_above_their_byte_limits_are_refused() {
    let path = |bytes: usize| format!("https://shop.example/{}", "a".repeat(bytes - 21));
    assert!(parse_endpoint_url(&path(URL_BYTES_MAX)).is_ok());
    assert_urls(&[(&path(URL_BYTES_MAX + 1), "too_long")]);
    // Each of these grows to six bytes when it is percent-encoded.
    assert_urls(&[(&format!("https://shop.example/{}", "é".repeat(400)), "too_long")]);

    let name = |bytes: usize| format!("https://{}{}/", "a.".repeat((bytes - 3) / 2), "abc");
    assert!(parse_endpoint_url(&name(253)).is_ok());
    assert_urls(&[(&name(255), "bad_name")]);
    assert!(parse_endpoint_url(&format!("https://{}.example/", "a".repeat(63))).is_ok());
    assert_urls(&[(&format!("https://{}.example/", "a".repeat(64)), "bad_name")]);
}

#[test]
fn names_outside_the_open_internet_are_refused() {
    assert_urls(&[
        ("https://localhost/", "local_name"),
        ("https://localhost:3000/hook", "local_name"),
        ("https://LOCALHOST/", "local_name"),
        ("https://localhost./", "local_name"),
        ("https://ｌｏｃａｌｈｏｓｔ/", "local_name"),
        ("https://loc%61lhost/", "local_name"),
        ("https://shop.localhost/", "local_name"),
        ("https://localhost.localdomain/", "local_name"),
        ("https://printer.local/", "local_name"),
        ("https://kubernetes.default.svc.cluster.local/", "local_name"),
        ("https://api.internal/", "local_name"),
        ("https://nas.home.arpa/", "local_name"),
        ("https://wiki.corp/", "local_name"),
        ("https://wiki.intranet/", "local_name"),
        ("https://wiki.private/", "local_name"),
        ("https://nas.home/", "local_name"),
        ("https://router.lan./", "local_name"),
        ("https://hidden.onion/", "local_name"),
        ("https://shop/", "single_label"),
        ("https://shop./", "single_label"),
        ("https://com/", "single_label"),
        ("https://sim/", "single_label"),
    ]);
}

#[test]
fn a_name_that_only_ends_like_a_local_zone_is_accepted() {
    assert_urls(&[
        ("https://notlocalhost.example/", "https://notlocalhost.example/"),
        ("https://localhost.example/", "https://localhost.example/"),
        ("https://shop.mylocal/", "https://shop.mylocal/"),
        ("https://internal.example/", "https://internal.example/"),
        ("https://x.metadata.goog.example/", "https://x.metadata.goog.example/"),
    ]);
}

#[test]
fn metadata_services_are_refused_by_name_and_by_address() {
    assert_urls(&[
        ("https://metadata.google.internal/computeMetadata/v1/", "metadata_name"),
        ("https://Metadata.Google.Internal./", "metadata_name"),
        ("https://metadata.goog/", "metadata_name"),
        ("https://metadata/", "metadata_name"),
        ("https://instance-data/latest/meta-data/", "metadata_name"),
        ("https://instance-data.ec2.internal/", "metadata_name"),
        ("https://metadata.azure.internal/", "metadata_name"),
        ("https://metadata.packet.net/", "metadata_name"),
        ("https://metadata.platformequinix.com/", "metadata_name"),
        ("https://metadata.tencentyun.com/", "metadata_name"),
        ("https://api.metadata.cloud.ibm.com/", "metadata_name"),
        ("https://169.254.169.254/latest/meta-data/", "metadata"),
        ("https://0xa9fea9fe/", "metadata"),
        ("https://2852039166/", "metadata"),
        ("https://0251.0376.0251.0376/", "metadata"),
        ("https://169.254.43518/", "metadata"),
        ("https://[::ffff:a9fe:a9fe]/", "metadata"),
        ("https://[::ffff:169.254.169.254]/", "metadata"),
        ("https://[64:ff9b::a9fe:a9fe]/", "metadata"),
        ("https://[2002:a9fe:a9fe::1]/", "metadata"),
        ("https://[fd00:ec2::254]/", "metadata"),
        ("https://[fd00:0ec2:0:0:0:0:0:254]/", "metadata"),
        ("https://[fd20:ce::254]/", "metadata"),
        ("https://[fd00:42::42]/", "metadata"),
        ("https://100.100.100.200/", "metadata"),
        ("https://168.63.129.16/", "metadata"),
        ("https://192.0.0.192/", "metadata"),
    ]);
}

#[test]
fn addresses_next_to_a_metadata_service_are_reported_by_their_range() {
    assert_addresses(&[
        ("169.254.169.253", "link_local"),
        ("169.254.169.255", "link_local"),
        ("100.100.100.201", "shared"),
        ("192.0.0.193", "protocol"),
        ("fd00:ec2::255", "unique_local"),
        ("fd20:ce::255", "unique_local"),
        ("fd00:42::43", "unique_local"),
        ("fe80::a9fe:a9ff", "link_local"),
    ]);
}

#[test]
fn obfuscated_addresses_are_decoded() {
    assert_urls(&[
        ("https://127.0.0.1/", "loopback"),
        ("https://127.1/", "loopback"),
        ("https://127.0.1/", "loopback"),
        ("https://0x7f000001/", "loopback"),
        ("https://0x7F.1/", "loopback"),
        ("https://0x7f.0x0.0x0.0x1/", "loopback"),
        ("https://2130706433/", "loopback"),
        ("https://017700000001/", "loopback"),
        ("https://0177.0.0.1/", "loopback"),
        ("https://127.0.0.1./", "loopback"),
        ("https://127.000.000.001/", "loopback"),
        ("https://１２７.０.０.１/", "loopback"),
        ("https://127。0。0。1/", "loopback"),
        ("https://①②⑦.0.0.1/", "loopback"),
        ("https://%31%32%37.0.0.1/", "loopback"),
        ("https://0/", "unspecified"),
        ("https://0.0.0.0:8080/", "unspecified"),
        ("https://10.1/", "private"),
        ("https://192.168.257/", "private"),
        ("https://0xffffffff/", "broadcast"),
        ("https://[::]/", "unspecified"),
        ("https://[::1]/", "loopback"),
        ("https://[0:0:0:0:0:0:0:1]/", "loopback"),
        ("https://[0000::0001]:443/", "loopback"),
        ("https://[::127.0.0.1]/", "loopback"),
        ("https://[::ffff:127.0.0.1]/", "loopback"),
        ("https://[::ffff:0:127.0.0.1]/", "loopback"),
        ("https://[64:ff9b::127.0.0.1]/", "loopback"),
        ("https://[64:ff9b:1::10.0.0.1]/", "private"),
        ("https://[2002:7f00:1::]/", "loopback"),
        ("https://[fe80::1]/", "link_local"),
        ("https://[fe80::1%25eth0]/", "unreadable"),
        ("https://[fe80::1%eth0]/", "unreadable"),
        ("https://[fec0::1]/", "site_local"),
    ]);
}

#[test]
fn only_names_below_sim_are_simulated() {
    assert_urls(&[
        ("https://shop.sim/hook", "https://shop.sim/hook"),
        ("https://Shop.SIM.:8443/", "https://shop.sim:8443/"),
    ]);
    let is_simulated = |url| parse_endpoint_url(url).expect("the URL is accepted").is_simulated();
    assert!(is_simulated("https://shop.sim/hook"));
    assert!(is_simulated("https://a.b.sim/"));
    assert!(!is_simulated("https://shop.example/shop.sim"));
    assert!(!is_simulated("https://shop.sim.example/"));
    assert!(!is_simulated("https://shop.notsim/"));
    assert!(!is_simulated("https://8.8.8.8/"));
}

#[test]
fn a_url_has_host_port_authority_and_path() {
    let parts = |text| {
        let url = parse_endpoint_url(text).expect("the URL is accepted");
        format!("{:?} | {} | {} | {}", url.host(), url.port(), url.authority(), url.path_and_query())
    };
    assert_eq!(parts("https://Shop.example/a?b=c"), r#"Name("shop.example") | 443 | shop.example | /a?b=c"#);
    assert_eq!(parts("https://8.8.8.8:8443"), "Address(8.8.8.8) | 8443 | 8.8.8.8:8443 | /");
    assert_eq!(parts("https://[2600::1]/x"), "Address(2600::1) | 443 | [2600::1] | /x");
}

#[test]
fn each_ipv4_range_has_its_registered_bounds() {
    // (the address before, the first, the last, the address after, the rule)
    let table = [
        ("", "0.0.0.1", "0.255.255.255", "1.0.0.0", "this_network"),
        ("9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0", "private"),
        ("100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0", "shared"),
        ("126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0", "loopback"),
        ("168.63.129.15", "168.63.129.16", "168.63.129.16", "168.63.129.17", "metadata"),
        ("169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0", "link_local"),
        ("172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0", "private"),
        ("191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0", "protocol"),
        ("192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0", "documentation"),
        ("192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0", "protocol"),
        ("192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0", "private"),
        ("198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0", "benchmark"),
        ("198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0", "documentation"),
        ("203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0", "documentation"),
        ("223.255.255.255", "224.0.0.0", "239.255.255.255", "", "multicast"),
        ("", "240.0.0.0", "255.255.255.254", "", "reserved"),
    ];
    for (before, first, last, after, rule) in table {
        assert_addresses(&[(first, rule), (last, rule)]);
        for outside in [before, after].into_iter().filter(|text| !text.is_empty()) {
            assert_addresses(&[(outside, "public")]);
        }
    }
    assert_addresses(&[("0.0.0.0", "unspecified"), ("255.255.255.255", "broadcast")]);
}

#[test]
fn each_ipv6_range_has_its_registered_bounds() {
    const ONES: &str = "ffff:ffff:ffff:ffff:ffff:ffff";
    // Returns the last address that begins with these groups.
    let last = |start: &str| format!("{start}:{ONES}").split(':').take(8).collect::<Vec<_>>().join(":");
    assert_addresses(&[
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("::2", "this_network"),
        ("64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff", "reserved"),
        ("100::", "reserved"),
        ("100::ffff:ffff:ffff:ffff", "reserved"),
        (&last("1fff:ffff"), "reserved"),
        ("2000::", "public"),
        (&last("2000:ffff"), "public"),
        ("2001:1::1", "protocol"),
        ("2001:2::1", "benchmark"),
        (&last("2001:2:0"), "benchmark"),
        ("2001:2:1::", "protocol"),
        ("2001:20::", "protocol"),
        (&last("2001:1ff"), "protocol"),
        ("2001:200::", "public"),
        (&last("2001:db7"), "public"),
        ("2001:db8::", "documentation"),
        (&last("2001:db8"), "documentation"),
        ("2001:db9::", "public"),
        ("2003::", "public"),
        (&last("3ffe:ffff"), "public"),
        ("3fff::", "documentation"),
        (&last("3fff:fff"), "documentation"),
        ("3fff:1000::", "public"),
        (&last("3fff:ffff"), "public"),
        ("4000::", "reserved"),
        ("5f00::1", "reserved"),
        (&last("fbff:ffff"), "reserved"),
        ("fc00::", "unique_local"),
        ("fd12:3456:789a::1", "unique_local"),
        (&last("fdff:ffff"), "unique_local"),
        ("fe00::", "reserved"),
        (&last("fe7f:ffff"), "reserved"),
        ("fe80::", "link_local"),
        ("fe80::a9fe:a9fe", "metadata"),
        (&last("febf:ffff"), "link_local"),
        ("fec0::", "site_local"),
        (&last("feff:ffff"), "site_local"),
        ("ff00::", "multicast"),
        ("ff02::1", "multicast"),
        (&last("ffff:ffff"), "multicast"),
    ]);
}

#[test]
fn ipv4_embedded_in_ipv6_is_judged_as_ipv4() {
    assert_addresses(&[
        // Mapped and NAT64 lead to the IPv4 internet and nowhere else.
        ("::ffff:8.8.8.8", "public"),
        ("::ffff:10.0.0.1", "private"),
        ("::ffff:100.64.0.1", "shared"),
        ("64:ff9b::8.8.8.8", "public"),
        ("64:ff9b::192.168.0.1", "private"),
        ("64:ff9b::255.255.255.255", "broadcast"),
        // 6to4.
        ("2002:808:808::1", "public"),
        ("2002:a00:1::1", "private"),
        ("2002:c0a8:101:1::1", "private"),
        ("2002:e000:1::", "multicast"),
        // Teredo: a private server, a private client, and neither.
        ("2001:0:7f00:1::f7f7:f7f7", "loopback"),
        ("2001:0:808:808:0:0:80ff:fffe", "loopback"),
        ("2001:0:808:808:0:0:f5ff:fffe", "private"),
        ("2001:0:808:808:0:0:5601:5601", "metadata"),
        ("2001:0:808:808:0:0:f7f7:f7f7", "protocol"),
        // ISATAP, with the bit for globally unique addresses off and on.
        ("2600::5efe:10.0.0.1", "private"),
        ("2600::200:5efe:169.254.169.254", "metadata"),
        ("2600::5efe:8.8.8.8", "public"),
        ("2002:808:808::5efe:127.0.0.1", "loopback"),
        // A public address inside makes none of these public.
        ("::8.8.8.8", "reserved"),
        ("::ffff:0:8.8.8.8", "reserved"),
        ("64:ff9b:1::8.8.8.8", "reserved"),
        ("64:ff9b:0:1::8.8.8.8", "reserved"),
        ("fe80::5efe:8.8.8.8", "link_local"),
        // Not a tunnel, whatever the last bits look like.
        ("2600::127.0.0.1", "public"),
    ]);
}

#[test]
fn well_known_public_addresses_are_public() {
    assert_addresses(&[
        ("1.1.1.1", "public"),
        ("8.8.8.8", "public"),
        ("9.9.9.9", "public"),
        ("34.117.59.81", "public"),
        ("93.184.215.14", "public"),
        ("100.128.0.1", "public"),
        ("169.253.169.254", "public"),
        ("172.67.0.1", "public"),
        ("192.0.1.1", "public"),
        ("193.0.14.129", "public"),
        ("198.41.0.4", "public"),
        ("199.7.83.42", "public"),
        ("2001:4860:4860::8888", "public"),
        ("2001:500:2::c", "public"),
        ("2606:4700:4700::1111", "public"),
        ("2620:fe::fe", "public"),
        ("2a00:1450:4001:81b::200e", "public"),
    ]);
}

#[test]
fn every_resolved_address_must_be_public() {
    #[track_caller]
    fn check(addresses: &[&str], expected: &str) {
        let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        let rule = check_resolved(&addresses).map_or_else(|refusal| refusal.rule(), |()| "public");
        assert_eq!(rule, expected, "{addresses:?}");
    }
    check(&["8.8.8.8"], "public");
    check(&["8.8.8.8", "2606:4700:4700::1111"], "public");
    check(&[], "unresolved");
    check(&["10.0.0.1", "8.8.8.8"], "private");
    check(&["8.8.8.8", "2606:4700:4700::1111", "::1"], "loopback");
}

#[test]
fn a_refusal_names_the_value_and_what_is_allowed() {
    #[track_caller]
    fn check(typed: &str, expected: &str) {
        assert_eq!(parse_endpoint_url(typed).unwrap_err().to_string(), expected);
    }
    check("http://shop.example/", "the scheme is `http`; only `https` is allowed");
    check("https://127.1/", "`127.0.0.1` is a loopback address; only public addresses are allowed");
    check(
        "https://[2002:a00:1::]/",
        "`2002:a00:1::` contains `10.0.0.1`, a private address; only public addresses are allowed",
    );
    check(
        "https://nas.lan/",
        "`nas.lan` is a local name (`lan`); a public host name such as `hooks.shop.example` is allowed",
    );
    check("https://shop.example:0/", "the port is `0`; 1 to 65535 are allowed");
}

#[test]
fn a_refusal_never_repeats_a_password() {
    for typed in ["https://user:secret@shop.example/", "http://u:secret@x/", "https://u:secret@[::1/"] {
        let refusal = parse_endpoint_url(typed).unwrap_err();
        assert!(!format!("{refusal} {refusal:?}").contains("secret"), "{refusal}");
    }
}

/// Generates texts that resemble URLs: random characters rarely form a scheme.
fn url_like_text() -> impl Strategy<Value = String> {
    ("(https?://)?", "[a-z0-9.:@%\\[\\]xX。１]{0,24}", "(:[0-9]{0,6})?", "\\PC{0,12}")
        .prop_map(|(scheme, host, port, rest)| format!("{scheme}{host}{port}/{rest}"))
}

/// Generates any IPv4 address, and often one whose first byte begins a special range.
fn ipv4() -> impl Strategy<Value = Ipv4Addr> {
    let special = prop::sample::select(vec![0u8, 10, 100, 127, 168, 169, 172, 192, 198, 203, 224, 255]);
    let near_special = (special, any::<[u8; 3]>()).prop_map(|(a, [b, c, d])| Ipv4Addr::new(a, b, c, d));
    prop_oneof![any::<Ipv4Addr>(), near_special]
}

proptest! {
    #[test]
    fn no_text_causes_a_panic_and_the_normalized_form_is_stable(text in prop_oneof![any::<String>(), url_like_text()]) {
        if let Ok(url) = parse_endpoint_url(&text) {
            prop_assert_eq!(parse_endpoint_url(&url.to_string()), Ok(url.clone()), "the normalized form is stable");
            prop_assert!(url.to_string().is_ascii());
            prop_assert!(url.path_and_query().starts_with('/'));
        }
    }

    #[test]
    fn an_embedded_ipv4_address_gets_the_same_verdict(ip in ipv4()) {
        let verdict = rule_of(ip.into());
        let low = u128::from(ip.to_bits());
        prop_assert_eq!(rule_of(ip.to_ipv6_mapped().into()), verdict);
        prop_assert_eq!(rule_of(Ipv6Addr::from_bits(0x64_ff9b << 96 | low).into()), verdict);
        prop_assert_eq!(rule_of(Ipv6Addr::from_bits(0x2002 << 112 | low << 80 | 1).into()), verdict);
        let typed = parse_endpoint_url(&format!("https://{}/", ip.to_bits())).map_or_else(|refusal| refusal.rule(), |_| "public");
        prop_assert_eq!(typed, verdict);
    }

    #[test]
    fn special_addresses_of_the_standard_library_are_never_public(ip in ipv4()) {
        let special = ip.is_private()
            || ip.is_loopback()
            || ip.is_link_local()
            || ip.is_broadcast()
            || ip.is_documentation()
            || ip.is_multicast()
            || ip.is_unspecified();
        prop_assert!(!special || rule_of(ip.into()) != "public", "{ip}");
    }

    #[test]
    fn no_ipv6_address_outside_global_unicast_is_public(bits: u128) {
        let ip = Ipv6Addr::from_bits(bits);
        prop_assert!(bits >> 125 == 1 || rule_of(ip.into()) != "public", "{ip}");
    }
}
