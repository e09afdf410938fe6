//! Resources as YAML documents: `kind`, `id` and `spec`, several to a file, in a file or a folder.
//!
//! Each text is read twice, side by side: once for its shape and kinds, once into the spec of
//! each kind straight from the text, so that an error has a path and a line, and a price keeps
//! the digits that were written.

use std::fmt;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, DeserializeOwned, DeserializeSeed, IgnoredAny};
use serde::{Deserialize, Deserializer};

use crate::input;
use crate::resource::{
    CredentialSpec, Kind, LimitSpec, ModelSpec, PriceBookSpec, ProviderSpec, RuleSetSpec,
    SettingsSpec, TeamSpec, VirtualKeySpec,
};

/// One resource that a text asks for.
#[derive(Debug)]
pub(crate) struct Document {
    /// For example `models.yaml, document 2`.
    pub(crate) place: String,
    /// Where the files that it names are looked for.
    pub(crate) folder: PathBuf,
    /// Empty for a singleton.
    pub(crate) id: String,
    pub(crate) body: Body,
}

/// A spec with its kind.
#[derive(Debug)]
pub(crate) enum Body {
    Provider(ProviderSpec),
    Team(TeamSpec),
    VirtualKey(VirtualKeySpec),
    Credential(CredentialSpec),
    Model(ModelSpec),
    RuleSet(RuleSetSpec),
    PriceBook(PriceBookSpec),
    Limit(Box<LimitSpec>),
    Settings(SettingsSpec),
}

/// A text and where it came from.
#[derive(Debug)]
pub(crate) struct Source {
    name: String,
    folder: PathBuf,
    text: String,
}

// === impl Body ===

impl Body {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Provider(_) => Kind::Provider,
            Self::Team(_) => Kind::Team,
            Self::VirtualKey(_) => Kind::VirtualKey,
            Self::Credential(_) => Kind::Credential,
            Self::Model(_) => Kind::Model,
            Self::RuleSet(_) => Kind::RuleSet,
            Self::PriceBook(_) => Kind::PriceBook,
            Self::Limit(_) => Kind::Limit,
            Self::Settings(_) => Kind::Settings,
        }
    }
}

// === impl Source ===

impl Source {
    /// A file, stdin (`-`), or the `.yaml`, `.yml` and `.json` files of a folder, by name.
    pub(crate) fn read_all(path: &Path) -> anyhow::Result<Vec<Self>> {
        if !path.is_dir() {
            return Ok(vec![Self::read(path)?]);
        }
        let mut files = Vec::new();
        let entries = fs::read_dir(path).with_context(|| format!("open {}", path.display()))?;
        for entry in entries {
            let file = entry
                .with_context(|| format!("read {}", path.display()))?
                .path();
            let extension = file.extension().and_then(|extension| extension.to_str());
            if file.is_file() && matches!(extension, Some("yaml" | "yml" | "json")) {
                files.push(file);
            }
        }
        if files.is_empty() {
            bail!("{} holds no .yaml, .yml or .json file", path.display());
        }
        files.sort();
        files.iter().map(|file| Self::read(file)).collect()
    }

    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let mut text = String::new();
        input::open(path)?
            .read_to_string(&mut text)
            .with_context(|| format!("read {}", path.display()))?;
        let name = match path.to_str() {
            Some("-") => "stdin".to_owned(),
            _ => path.display().to_string(),
        };
        Ok(Self {
            name,
            folder: path.parent().unwrap_or(Path::new("")).to_owned(),
            text,
        })
    }

    /// Every resource of the text, in its order; empty documents are passed over.
    pub(crate) fn documents(&self) -> anyhow::Result<Vec<Document>> {
        let passes = serde_norway::Deserializer::from_str(&self.text)
            .zip(serde_norway::Deserializer::from_str(&self.text));
        let mut documents = Vec::new();
        if self.is_blank() {
            return Ok(documents);
        }
        for (number, (first, second)) in (1..).zip(passes) {
            let place = format!("{}, document {number}", self.name);
            let shape = Shape::deserialize(first).with_context(|| place.clone())?;
            match shape {
                Shape::Empty => {}
                Shape::One(head) => {
                    let seed = head.seed().with_context(|| place.clone())?;
                    let resource = seed.deserialize(second).with_context(|| place.clone())?;
                    documents.push(self.document(place, resource)?);
                }
                Shape::Many(heads) => {
                    let resources = seeds(&heads)
                        .and_then(|seeds| Ok(SeedList(seeds).deserialize(second)?))
                        .with_context(|| place.clone())?;
                    for (item, resource) in (1..).zip(resources) {
                        let place = format!("{place}, item {item}");
                        documents.push(self.document(place, resource)?);
                    }
                }
            }
        }
        Ok(documents)
    }

    /// The one spec of a kind of which there is one, bare or in a document of its kind.
    pub(crate) fn singleton<S: DeserializeOwned>(&self, kind: Kind) -> anyhow::Result<S> {
        let mut passes = serde_norway::Deserializer::from_str(&self.text)
            .zip(serde_norway::Deserializer::from_str(&self.text));
        let context = || self.name.clone();
        if self.is_blank() {
            bail!("{}: it is empty", self.name);
        }
        let (first, second) = passes.next().context("it is empty").with_context(context)?;
        let shape = Shape::deserialize(first).with_context(context)?;
        let spec = match shape {
            Shape::One(Head { kind: None }) => S::deserialize(second).with_context(context)?,
            Shape::One(Head { kind: Some(found) }) if found == kind.name() => {
                let envelope = Envelope::<S>::deserialize(second).with_context(context)?;
                envelope.spec
            }
            Shape::One(Head { kind: Some(found) }) => {
                bail!("{}: kind `{found}` is not `{}`", self.name, kind.name())
            }
            Shape::Empty => bail!("{}: it is empty", self.name),
            Shape::Many(_) => bail!("{}: expected one {}, found a list", self.name, kind.noun()),
        };
        if passes.next().is_some() {
            bail!("{}: expected one document, found several", self.name);
        }
        Ok(spec)
    }

    /// Nothing but comments: the parser would call it an unexpected end.
    fn is_blank(&self) -> bool {
        let mut lines = self.text.lines().map(str::trim_start);
        lines.all(|line| line.is_empty() || line.starts_with('#'))
    }

    fn document(&self, place: String, resource: Resource) -> anyhow::Result<Document> {
        let Resource { id, body } = resource;
        let kind = body.kind();
        match (&id, kind.is_singleton()) {
            (Some(_), true) => bail!("{place}: `id` is set, but there is one {}", kind.noun()),
            (None, false) => bail!("{place}: `id` is missing"),
            (Some(id), false) if id.is_empty() => bail!("{place}: `id` is empty"),
            (Some(_), false) | (None, true) => {}
        }
        Ok(Document {
            place,
            folder: self.folder.clone(),
            id: id.unwrap_or_default(),
            body,
        })
    }
}

/// What the first reading looks for.
enum Shape {
    Empty,
    One(Head),
    Many(Vec<Head>),
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    kind: Option<String>,
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShapeVisitor)
    }
}

struct ShapeVisitor;

impl<'de> de::Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a resource with `kind`, `id` and `spec`, or a list of them")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Shape, E> {
        Ok(Shape::Empty)
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Shape, A::Error> {
        Head::deserialize(MapAccessDeserializer::new(map)).map(Shape::One)
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, list: A) -> Result<Shape, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(Shape::Many)
    }
}

// === impl Head ===

impl Head {
    fn seed(&self) -> anyhow::Result<Seed> {
        let known = || Kind::ALL.map(Kind::name).join(", ");
        let name = self
            .kind
            .as_ref()
            .ok_or_else(|| anyhow!("`kind` is missing: one of {}", known()))?;
        let kind = Kind::parse(name)
            .ok_or_else(|| anyhow!("unknown kind `{name}`, expected one of {}", known()))?;
        Ok(Seed(kind))
    }
}

fn seeds(heads: &[Head]) -> anyhow::Result<Vec<Seed>> {
    (1..)
        .zip(heads)
        .map(|(item, head): (usize, _)| head.seed().with_context(|| format!("item {item}")))
        .collect()
}

/// A resource before its id is checked.
struct Resource {
    id: Option<String>,
    body: Body,
}

/// The second reading of one resource, into the spec of its kind.
struct Seed(Kind);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Envelope<S> {
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    #[serde(default)]
    id: Option<String>,
    spec: S,
    /// Printed by `get -o json`, so accepted and not looked at.
    #[serde(default, rename = "status")]
    _status: IgnoredAny,
}

impl<'de> DeserializeSeed<'de> for Seed {
    type Value = Resource;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Resource, D::Error> {
        fn read<'de, D: Deserializer<'de>, S: Deserialize<'de>>(
            deserializer: D,
            body: fn(S) -> Body,
        ) -> Result<Resource, D::Error> {
            let Envelope { id, spec, .. } = Envelope::deserialize(deserializer)?;
            Ok(Resource {
                id,
                body: body(spec),
            })
        }
        match self.0 {
            Kind::Provider => read(deserializer, Body::Provider),
            Kind::Team => read(deserializer, Body::Team),
            Kind::VirtualKey => read(deserializer, Body::VirtualKey),
            Kind::Credential => read(deserializer, Body::Credential),
            Kind::Model => read(deserializer, Body::Model),
            Kind::RuleSet => read(deserializer, Body::RuleSet),
            Kind::PriceBook => read(deserializer, Body::PriceBook),
            Kind::Limit => read(deserializer, |spec| Body::Limit(Box::new(spec))),
            Kind::Settings => read(deserializer, Body::Settings),
        }
    }
}

struct SeedList(Vec<Seed>);

impl<'de> DeserializeSeed<'de> for SeedList {
    type Value = Vec<Resource>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> de::Visitor<'de> for SeedList {
    type Value = Vec<Resource>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of resources")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut resources = Vec::new();
        for seed in self.0 {
            resources.extend(list.next_element_seed(seed)?);
        }
        Ok(resources)
    }
}

#[cfg(test)]
mod tests;
