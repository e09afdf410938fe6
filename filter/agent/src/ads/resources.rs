//! Taking single resources in and out of a whole config.

use filter_core::config::Resources;

use super::{Kind, Resource, ResourceName, SINGLETON};

/// A config whose resources can be edited one by one.
pub(super) trait Editable {
    /// Adds a resource, in the place of the one of that type and id.
    fn put(&mut self, resource: Resource);
    /// Takes a resource out.
    fn remove(&mut self, name: &ResourceName) -> Option<Resource>;
    /// A copy of a resource.
    fn resource(&self, name: &ResourceName) -> Option<Resource>;
}

impl Editable for Resources {
    fn put(&mut self, resource: Resource) {
        match resource {
            Resource::VirtualKey(key) => drop(self.virtual_keys.insert(key.id.clone(), key)),
            Resource::Team(team) => drop(self.teams.insert(team.id.clone(), team)),
            Resource::Provider(provider) => {
                self.providers.insert(provider.id.clone(), provider);
            }
            Resource::Credential(credential) => {
                self.credentials.insert(credential.id.clone(), credential);
            }
            Resource::Model(model) => drop(self.models.insert(model.id.clone(), model)),
            Resource::Limit(limit) => drop(self.limits.insert(limit.id.clone(), limit)),
            Resource::RuleSet(rules) => self.rule_set = Some(rules),
            Resource::PriceBook(book) => self.price_book = Some(book),
            Resource::Settings(settings) => self.settings = Some(settings),
        }
    }

    fn remove(&mut self, name: &ResourceName) -> Option<Resource> {
        let id = name.name.as_str();
        match name.kind {
            Kind::VirtualKey => self.virtual_keys.remove(id).map(Resource::VirtualKey),
            Kind::Team => self.teams.remove(id).map(Resource::Team),
            Kind::Provider => self.providers.remove(id).map(Resource::Provider),
            Kind::Credential => self.credentials.remove(id).map(Resource::Credential),
            Kind::Model => self.models.remove(id).map(Resource::Model),
            Kind::Limit => self.limits.remove(id).map(Resource::Limit),
            Kind::RuleSet => single(&mut self.rule_set, id).map(Resource::RuleSet),
            Kind::PriceBook => single(&mut self.price_book, id).map(Resource::PriceBook),
            Kind::Settings => single(&mut self.settings, id).map(Resource::Settings),
            Kind::Checkpoint => None,
        }
    }

    fn resource(&self, name: &ResourceName) -> Option<Resource> {
        let id = name.name.as_str();
        let only = id == SINGLETON;
        match name.kind {
            Kind::VirtualKey => self.virtual_keys.get(id).cloned().map(Resource::VirtualKey),
            Kind::Team => self.teams.get(id).cloned().map(Resource::Team),
            Kind::Provider => self.providers.get(id).cloned().map(Resource::Provider),
            Kind::Credential => self.credentials.get(id).cloned().map(Resource::Credential),
            Kind::Model => self.models.get(id).cloned().map(Resource::Model),
            Kind::Limit => self.limits.get(id).cloned().map(Resource::Limit),
            Kind::RuleSet => self
                .rule_set
                .clone()
                .filter(|_| only)
                .map(Resource::RuleSet),
            Kind::PriceBook => self
                .price_book
                .clone()
                .filter(|_| only)
                .map(Resource::PriceBook),
            Kind::Settings => self.settings.filter(|_| only).map(Resource::Settings),
            Kind::Checkpoint => None,
        }
    }
}

fn single<T>(slot: &mut Option<T>, id: &str) -> Option<T> {
    slot.take_if(|_| id == SINGLETON)
}
