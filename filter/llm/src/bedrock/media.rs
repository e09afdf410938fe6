//! Images, sounds and documents: Converse names formats where others have media types, and takes
//! bytes only.

use super::block::{Document, Media, Source};
use crate::conversation::{Media as Said, MediaSource};
use crate::request::RequestFault;

const MOST_NAME_LETTERS: usize = 200;

pub(super) fn image<'r>(said: &'r Said<'_>) -> Result<Media<'r>, RequestFault> {
    let (media_type, source) = bytes(said)?;
    let format = match media_type {
        "image/png" => "png",
        "image/jpeg" | "image/jpg" => "jpeg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        _ => return Err(RequestFault::untold("an image of this type")),
    };
    Ok(Media { format, source })
}

pub(super) fn audio<'r>(said: &'r Said<'_>) -> Result<Media<'r>, RequestFault> {
    let (media_type, source) = bytes(said)?;
    let format = match media_type {
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mp3" | "audio/mpeg" => "mp3",
        "audio/flac" => "flac",
        "audio/aac" => "aac",
        "audio/ogg" => "ogg",
        "audio/opus" => "opus",
        "audio/webm" => "webm",
        _ => return Err(RequestFault::untold("audio of this type")),
    };
    Ok(Media { format, source })
}

/// `number` counts the request's documents from 1: no two may have one name.
pub(super) fn document<'r>(
    said: &'r Said<'_>,
    number: usize,
) -> Result<Document<'r>, RequestFault> {
    let (media_type, source) = bytes(said)?;
    let format = match media_type {
        "application/pdf" => "pdf",
        "text/csv" => "csv",
        "application/msword" => "doc",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => "docx",
        "application/vnd.ms-excel" => "xls",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => "xlsx",
        "text/html" => "html",
        "text/plain" => "txt",
        "text/markdown" => "md",
        _ => return Err(RequestFault::untold("a file of this type")),
    };
    let name = name(said.name.as_deref().unwrap_or_default(), number);
    Ok(Document {
        format,
        name,
        source,
    })
}

fn bytes<'r>(said: &'r Said<'_>) -> Result<(&'r str, Source<'r>), RequestFault> {
    match &said.source {
        MediaSource::Base64 { media_type, data } => Ok((media_type, Source { bytes: data })),
        MediaSource::Url(_) => Err(RequestFault::untold("a link to an image or a file")),
        MediaSource::Id(_) => Err(RequestFault::untold("the id of an uploaded file")),
    }
}

/// Letters, digits, single blanks, hyphens and brackets are all that a name may have.
fn name(said: &str, number: usize) -> String {
    let stem = said.rsplit_once('.').map_or(said, |(stem, _)| stem);
    let plain = |letter: char| match letter {
        '-' | '(' | ')' | '[' | ']' => letter,
        _ if letter.is_ascii_alphanumeric() => letter,
        _ => ' ',
    };
    let plain: String = stem.chars().map(plain).collect();
    let words: Vec<&str> = plain.split_ascii_whitespace().collect();
    let mut name = match words.is_empty() {
        true => "document".to_owned(),
        false => words.join(" "),
    };
    let ending = format!(" {number}");
    name.truncate(MOST_NAME_LETTERS - ending.len());
    name + &ending
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(media_type: &'static str, name: Option<&'static str>) -> Said<'static> {
        Said {
            source: MediaSource::Base64 {
                media_type: media_type.into(),
                data: "AAAA".into(),
            },
            name: name.map(Into::into),
            detail: None,
            cache: None,
        }
    }

    #[test]
    fn a_documents_name_has_only_what_it_may_and_is_like_no_other() {
        for (said, told) in [
            (Some("q3_report  (final).v2.pdf"), "q3 report (final) v2 1"),
            (Some("..."), "document 1"),
            (None, "document 1"),
        ] {
            let file = file("application/pdf", said);
            let document = document(&file, 1).unwrap();
            assert_eq!((document.format, document.name.as_str()), ("pdf", told));
        }
        let long = name(&"a".repeat(400), 12);
        assert!(long.len() == MOST_NAME_LETTERS && long.ends_with("a 12"));
    }

    #[test]
    fn what_is_no_bytes_or_of_no_known_type_is_refused() {
        let mut linked = file("image/png", None);
        linked.source = MediaSource::Url("https://x/a.png".into());
        let fault = image(&linked).err().unwrap();
        assert_eq!(
            fault.message,
            "a link to an image or a file can't be sent there"
        );
        let mut uploaded = file("image/png", None);
        uploaded.source = MediaSource::Id("file-1".into());
        assert!(document(&uploaded, 1).is_err());
        assert!(image(&file("image/bmp", None)).is_err());
        assert!(audio(&file("audio/x-none", None)).is_err());
        assert_eq!(audio(&file("audio/mpeg", None)).unwrap().format, "mp3");
    }
}
