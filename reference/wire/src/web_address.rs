//! Validation of the URLs that merchants provide and responses return verbatim.

/// Returns `true` if a string is a URL for every parser. A successful parse is not enough: the parser follows the rules
/// of browsers, which repair URLs that other parsers refuse (spaces, non-ASCII letters, `https:shop`), and the string is
/// returned verbatim.
pub(crate) fn is_web_address(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let schemes = ["http", "https"];
    if !schemes.iter().any(|known| scheme.eq_ignore_ascii_case(known)) || url::Url::parse(text).is_err() {
        return false;
    }
    let (authority, path_and_query) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@%".contains(&b);
    let escapes_are_valid = rest.match_indices('%').all(|(index, _)| {
        let digits = rest.as_bytes().get(index + 1..index + 3);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    let is_path_byte = |b: u8| is_plain(b) || b"/?#".contains(&b);
    !authority.is_empty()
        && escapes_are_valid
        && authority.bytes().all(|b| is_plain(b) || b"[]".contains(&b))
        && path_and_query.bytes().all(is_path_byte)
        && path_and_query.matches('#').count() <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_web_address_is_a_url_for_every_parser() {
        for good in [
            "https://shop.example",
            "HTTP://shop.example:8080/a/b?c=d&e=%20#f",
            "http://127.0.0.1:3000/thanks",
            "https://[::1]/?a",
        ] {
            assert!(is_web_address(good), "{good}");
        }
        for bad in [
            "",
            "shop.example",
            "ftp://shop.example",
            "https:shop.example",
            "https://",
            "https:///x",
            "https://Ï",
            " https://shop.example",
            "https://shop.example/a b",
            "https://shop.example/%2",
            "https://shop.example/[a]",
            "https://shop.example/#a#b",
            "https://shop.example/\\",
        ] {
            assert!(!is_web_address(bad), "{bad}");
        }
    }
}
