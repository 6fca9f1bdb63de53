//! `Hosts`: under which names the service may be asked.
//!
//! A page from anywhere can have its own name resolve to this machine and then ask the service in the name of whoever
//! looks at it (DNS rebinding). The browser still says the page's name in `Host`, by which such requests are told
//! apart.

use std::net::IpAddr;

use axum::http::{HeaderMap, Uri, header};

/// Names that requests may give.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hosts {
    /// Any: a token says who may ask, or anybody may.
    Any,
    /// Names and addresses of this machine for itself, and the address that is listened on.
    Own(IpAddr),
}

impl Hosts {
    /// Whether the names in a request are among them; a request without one comes from no browser.
    pub(crate) fn allow(self, uri: &Uri, headers: &HeaderMap) -> bool {
        let Self::Own(listen) = self else { return true };
        let own = |host: &str| is_own(host, listen);
        let mut given = headers.get_all(header::HOST).iter();
        uri.host().is_none_or(own)
            && given.all(|host| host.to_str().is_ok_and(|host| own(without_port(host))))
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_own(host: &str, listen: IpAddr) -> bool {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match address.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback() || address == listen,
        Err(_) => host.strip_suffix('.').unwrap_or(host).eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_its_own() {
        let allows = |uri: &str, hosts: &[&str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(header::HOST, host.parse().unwrap());
            }
            let uri: Uri = uri.parse().unwrap();
            assert!(Hosts::Any.allow(&uri, &headers));
            Hosts::Own("127.0.0.2".parse().unwrap()).allow(&uri, &headers)
        };
        for host in
            ["localhost", "LocalHost:8080", "localhost.", "127.0.0.1:80", "127.8.9.1", "[::1]", "[::1]:8080"]
        {
            assert!(allows("/", &[host]), "{host}");
        }
        assert!(allows("/", &[]) && allows("http://localhost:1/", &["localhost"]));
        for host in
            ["", "evil.example", "localhost.evil.example", "192.168.0.1:80", "127.0.0.1.nip.io", "::1:x"]
        {
            assert!(!allows("/", &[host]), "{host}");
        }
        assert!(!allows("http://evil.example/", &["localhost"]));
        assert!(!allows("/", &["localhost", "evil.example"]));
    }
}
