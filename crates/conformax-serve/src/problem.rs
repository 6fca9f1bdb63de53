//! `Problem`: what went wrong with a request, as `application/problem+json` (RFC 9457).

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use conformax_io::{Column, RequestFault, RowFault};
use serde::Serialize;

use crate::Error;

/// What the answer says it is.
pub(crate) const KIND: &str = "application/problem+json";

/// What was wanted, what came, and where: the row and the class where there is one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Problem {
    pub(crate) status: u16,
    title: &'static str,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<usize>,
    /// Whether it is the body's encoding, which the answer tells by a header and other problems must not.
    #[serde(skip)]
    is_packed: bool,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl std::fmt::Display) -> Self {
        let title = status.canonical_reason().unwrap_or("Error");
        let detail = conformax_io::printable(&detail.to_string()).to_string();
        Self { status: status.as_u16(), title, detail, row: None, class: None, is_packed: false }
    }

    /// The rows are not what the model takes.
    pub(crate) fn unprocessable(detail: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    pub(crate) fn bad_request(detail: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// The body is in an encoding that nobody here undoes.
    pub(crate) fn packed(encoding: &[u8]) -> Self {
        let found = String::from_utf8_lossy(encoding);
        let detail = format!("wanted the content encoding identity, got {found:?}: send the body as it is");
        Self { is_packed: true, ..Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail) }
    }

    #[must_use]
    pub(crate) fn in_row(mut self, row: u64) -> Self {
        self.row.get_or_insert(row);
        self
    }

    pub(crate) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The same with its row counted after so many others.
    #[must_use]
    pub(crate) fn after(self, rows: u64) -> Self {
        Self { row: self.row.map(|row| row + rows), ..self }
    }
}

impl From<RequestFault> for Problem {
    fn from(fault: RequestFault) -> Self {
        match fault {
            RequestFault::Json(error) => Self::bad_request(format_args!(
                "the body is not what it should be, {{\"rows\": [...]}}: {error}"
            )),
            RequestFault::TooMany(most) => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format_args!("a request may have {most} rows, and this one has more"),
            ),
            RequestFault::Row(row, RowFault { problem, class }) => {
                let detail = match &problem {
                    conformax_io::Problem::UnknownKey { key, .. } if key == "label" || key == "labels" => {
                        format!("{problem}; labels are posted to /v1/feedback")
                    }
                    problem => problem.to_string(),
                };
                Self { class, ..Self::unprocessable(detail) }.in_row(row as u64)
            }
        }
    }
}

impl From<conformax::Error> for Problem {
    fn from(error: conformax::Error) -> Self {
        let (row, class) = match &error {
            conformax::Error::Logit { row, class, .. } => (Some(*row), Some(*class)),
            other => (other.row(), None),
        };
        Self { row, class, ..Self::unprocessable(error) }
    }
}

impl From<conformax_io::Error> for Problem {
    /// Of a table that came with a request: its place without the name of the file it lay in meanwhile.
    fn from(error: conformax_io::Error) -> Self {
        let (row, class) = match &error.place().column {
            Some(Column::Class(class)) => (error.place().row, Some(*class)),
            _ => (error.place().row, None),
        };
        match error.problem() {
            conformax_io::Problem::Io(_) => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "a file could not be used")
            }
            problem => Self { row, class, ..Self::unprocessable(problem) },
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let full = matches!(&error, Error::File { error, .. }
            if matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge));
        match full {
            true => Self::new(
                StatusCode::INSUFFICIENT_STORAGE,
                "the disk of the service is full; what was not answered was not taken in",
            ),
            false => Self::new(StatusCode::SERVICE_UNAVAILABLE, error),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let kind = HeaderValue::from_static(KIND);
        let mut response = (status, [(header::CONTENT_TYPE, kind)], self.to_json()).into_response();
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.is_packed {
            response.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
