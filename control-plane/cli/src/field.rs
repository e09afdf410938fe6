//! Fields of the admin API in the words of whoever wrote them: flags, or members of a document.

/// What a command was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    Flags,
    Documents,
}

/// Fields whose flag is not simply their name.
const FLAGS: [(&str, &str); 17] = [
    ("capabilities", "--capability"),
    ("ca_pem", "--ca-file"),
    ("credential_id", "ID"),
    ("efforts", "--effort"),
    ("end_time", "--until"),
    ("environment_variable", "--env"),
    ("expire_time", "--expires"),
    ("headers", "--header"),
    ("import_secret", "--import-secret-file"),
    ("limit_id", "ID"),
    ("model_id", "NAME"),
    ("provider_id", "ID"),
    ("quirks", "--quirk"),
    ("secret", "--secret-file"),
    ("start_time", "--since"),
    ("targets", "--target"),
    ("virtual_key", "--key"),
];
/// The rest of them: an id is the first argument.
const IDS: [&str; 3] = ["name", "team_id", "virtual_key_id"];
/// Where the API keeps what nodes are sent of a limit.
const VALUES: &str = "values.";

impl Words {
    /// The text of a fault, `field: message` with `; ` between several, in these words. What is no
    /// such field stays.
    pub(crate) fn translate(self, text: &str) -> String {
        let parts: Vec<String> = text.split("; ").map(|part| self.fault(part)).collect();
        parts.join("; ")
    }

    fn fault(self, text: &str) -> String {
        let Some((field, message)) = text.split_once(": ") else {
            return text.to_owned();
        };
        let is_path = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.[]".contains(&byte)
        };
        if field.is_empty() || !field.bytes().all(is_path) {
            return text.to_owned();
        }
        let path = field.strip_prefix(VALUES).unwrap_or(field);
        let field = match self {
            Self::Flags => flag(path),
            Self::Documents => camel(path),
        };
        format!("{field}: {message}")
    }
}

fn flag(path: &str) -> String {
    let (first, index) = match path.split_once(['[', '.']) {
        Some((first, rest)) => (first, rest.split_once(']').map(|(index, _)| index)),
        None => (path, None),
    };
    let known = FLAGS.iter().find(|(field, _)| *field == first);
    let flag = match known {
        Some((_, flag)) => (*flag).to_owned(),
        None if IDS.contains(&first) => "ID".to_owned(),
        None => format!("--{}", first.replace('_', "-")),
    };
    match index.and_then(|index| index.parse::<usize>().ok()) {
        Some(index) => format!("{flag} (value {})", index.saturating_add(1)),
        None => flag,
    }
}

fn camel(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    let mut is_start = false;
    for character in path.chars() {
        match character {
            '_' => is_start = true,
            _ if is_start => {
                text.push(character.to_ascii_uppercase());
                is_start = false;
            }
            _ => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_name_what_was_written() {
        let text = "values.subject_id: must be empty; targets[1].provider: there is no such \
                    provider; virtual_key: is unknown; the model m: is odd";
        assert_eq!(
            Words::Flags.translate(text),
            "--subject-id: must be empty; --target (value 2): there is no such provider; \
             --key: is unknown; the model m: is odd"
        );
        assert_eq!(
            Words::Documents.translate(text),
            "subjectId: must be empty; targets[1].provider: there is no such provider; \
             virtualKey: is unknown; the model m: is odd"
        );
        assert_eq!(Words::Flags.translate("limit_id: x"), "ID: x");
        assert_eq!(Words::Flags.translate("no fault"), "no fault");
    }
}
