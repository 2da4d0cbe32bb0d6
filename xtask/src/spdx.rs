//! SPDX licence expressions, as far as crates use them.
//!
//! `WITH` names an exception, which only ever permits more, so the licence before it decides. A slash
//! is how crates of old wrote `OR`.

/// Whether the expression can be met with the licences that `allowed` accepts.
pub(crate) fn is_satisfied(expression: &str, allowed: impl Fn(&str) -> bool) -> Result<bool, String> {
    let mut reader = Reader { tokens: tokens(expression), allowed };
    let verdict = reader.any_of()?;
    match reader.next() {
        None => Ok(verdict),
        Some(token) => Err(format!("`{token}` follows a complete expression")),
    }
}

fn tokens(expression: &str) -> std::vec::IntoIter<String> {
    let mut spaced = String::with_capacity(expression.len());
    for c in expression.chars() {
        match c {
            '(' | ')' => spaced.extend([' ', c, ' ']),
            '/' => spaced.push_str(" OR "),
            _ => spaced.push(c),
        }
    }
    spaced.split_whitespace().map(str::to_owned).collect::<Vec<_>>().into_iter()
}

struct Reader<F> {
    tokens: std::vec::IntoIter<String>,
    allowed: F,
}

impl<F: Fn(&str) -> bool> Reader<F> {
    fn any_of(&mut self) -> Result<bool, String> {
        let mut verdict = self.all_of()?;
        while self.takes("OR") {
            verdict |= self.all_of()?;
        }
        Ok(verdict)
    }

    fn all_of(&mut self) -> Result<bool, String> {
        let mut verdict = self.one()?;
        while self.takes("AND") {
            verdict &= self.one()?;
        }
        Ok(verdict)
    }

    fn one(&mut self) -> Result<bool, String> {
        if self.takes("(") {
            let verdict = self.any_of()?;
            return if self.takes(")") { Ok(verdict) } else { Err("a `(` is not closed".to_owned()) };
        }
        let id = self.id()?;
        if self.takes("WITH") {
            self.id()?;
        }
        // `+` is "or any later version", so the named one will do.
        Ok((self.allowed)(id.strip_suffix('+').unwrap_or(&id)))
    }

    fn id(&mut self) -> Result<String, String> {
        match self.next() {
            Some(word) if !["OR", "AND", "WITH", "(", ")"].contains(&word.as_str()) => Ok(word),
            Some(word) => Err(format!("`{word}` stands where a licence should")),
            None => Err("it ends where a licence should follow".to_owned()),
        }
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_next = self.tokens.as_slice().first().is_some_and(|token| token == word);
        if is_next {
            self.tokens.next();
        }
        is_next
    }

    fn next(&mut self) -> Option<String> {
        self.tokens.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expression: &str, expected: Result<bool, &str>) {
        let verdict = is_satisfied(expression, |id| ["MIT", "Zlib", "Apache-2.0"].contains(&id));
        assert_eq!(verdict, expected.map_err(str::to_owned), "{expression}");
    }

    #[test]
    fn one_licence_is_allowed_or_not() {
        check("MIT", Ok(true));
        check("GPL-3.0-only", Ok(false));
        check("mit", Ok(false));
        check("Apache-2.0+", Ok(true));
    }

    #[test]
    fn of_alternatives_one_will_do() {
        check("MIT OR GPL-3.0-only", Ok(true));
        check("GPL-3.0-only OR MIT", Ok(true));
        check("GPL-3.0-only/MIT", Ok(true));
        check("GPL-3.0-only / LGPL-3.0-only", Ok(false));
    }

    #[test]
    fn of_a_conjunction_each_is_needed_and_it_binds_tighter() {
        check("MIT AND Zlib", Ok(true));
        check("MIT AND GPL-3.0-only", Ok(false));
        check("MIT OR Zlib AND GPL-3.0-only", Ok(true));
        check("(MIT OR Zlib) AND GPL-3.0-only", Ok(false));
        check("GPL-3.0-only AND (MIT OR Zlib) OR MIT", Ok(true));
    }

    #[test]
    fn an_exception_changes_nothing_for_the_worse() {
        check("Apache-2.0 WITH LLVM-exception", Ok(true));
        check("GPL-2.0-only WITH Classpath-exception-2.0", Ok(false));
        check("Apache-2.0 WITH LLVM-exception OR GPL-2.0-only", Ok(true));
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        check("", Err("it ends where a licence should follow"));
        check("MIT OR", Err("it ends where a licence should follow"));
        check("MIT AND OR Zlib", Err("`OR` stands where a licence should"));
        check("(MIT", Err("a `(` is not closed"));
        check("MIT Zlib", Err("`Zlib` follows a complete expression"));
        check("MIT)", Err("`)` follows a complete expression"));
    }
}
