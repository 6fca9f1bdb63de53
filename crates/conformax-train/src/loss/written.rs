//! A loss as a configuration spells it: a name, and the index where the name leaves it open.

use conformax::Gamma;
use serde::{Deserialize, Serialize};

use super::Loss;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    name: Name,
    #[serde(skip_serializing_if = "Option::is_none")]
    gamma: Option<f64>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Name {
    CrossEntropy,
    Sparsemax,
    Entmax15,
    Entmax,
}

impl TryFrom<Written> for Loss {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        match (written.name, written.gamma) {
            (Name::CrossEntropy, None) => Ok(Self::CrossEntropy),
            (Name::Sparsemax, None) => Ok(Self::Sparsemax),
            (Name::Entmax15, None) => Ok(Self::Entmax15),
            (Name::Entmax, Some(gamma)) => {
                Gamma::new(gamma).map(|gamma| Self::Entmax { gamma }).map_err(|error| error.to_string())
            }
            (Name::Entmax, None) => Err("the loss entmax needs a gamma from 1 to 16".into()),
            (Name::CrossEntropy | Name::Sparsemax | Name::Entmax15, Some(_)) => {
                Err("gamma belongs to the loss entmax; the other losses have their own".into())
            }
        }
    }
}

impl From<Loss> for Written {
    fn from(loss: Loss) -> Self {
        let (name, gamma) = match loss {
            Loss::CrossEntropy => (Name::CrossEntropy, None),
            Loss::Sparsemax => (Name::Sparsemax, None),
            Loss::Entmax15 => (Name::Entmax15, None),
            Loss::Entmax { gamma } => (Name::Entmax, Some(gamma.value())),
        };
        Self { name, gamma }
    }
}
