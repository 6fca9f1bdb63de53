//! What a model wants from a file: the path of every parameter, and its shape there.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;
use burn::tensor::backend::Backend;

use super::tensors::Head;

/// A parameter of the model.
pub(super) struct Parameter {
    /// Its place in the model, dots between.
    pub(super) path: String,
    /// PyTorch's shape: it keeps the weight of a linear layer as `[output, input]`.
    pub(super) file_shape: Vec<usize>,
}

/// Every parameter but a new head's, in the model's order. None is drawn for it: Burn's are lazy, and stay so.
pub(super) fn parameters<B: Backend, M: Module<B>>(model: &M, head: Head) -> Vec<Parameter> {
    let mut list = List { path: Vec::new(), owners: Vec::new(), parameters: Vec::new() };
    model.visit(&mut list);
    list.parameters.retain(|parameter| head == Head::Own || !parameter.path.starts_with("head."));
    list.parameters
}

struct List {
    path: Vec<String>,
    owners: Vec<String>,
    parameters: Vec<Parameter>,
}

impl<B: Backend> ModuleVisitor<B> for List {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.path.push(name.into());
        self.owners.push(container_type.into());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
        self.owners.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        let mut file_shape = param.lazy_shape().to_vec();
        if self.owners.last().is_some_and(|owner| owner == "Struct:Linear") {
            file_shape.reverse();
        }
        self.parameters.push(Parameter { path: self.path.join("."), file_shape });
    }
}
