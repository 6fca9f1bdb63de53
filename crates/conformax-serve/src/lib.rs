//! Prediction sets over HTTP.
