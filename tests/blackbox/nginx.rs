//! A real web server, nginx, in the foreground as a process of its own, on several loopback
//! addresses.

use crate::patience;
use std::{
    fmt::Write,
    fs,
    net::{IpAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

/// Where distributions put it.
const PROGRAMS: [&str; 3] = ["nginx", "/usr/sbin/nginx", "/usr/local/sbin/nginx"];

/// A running nginx; dropping it ends it.
pub struct Nginx {
    child: Child,
    log: PathBuf,
    port: u16,
}

/// One request as nginx logged it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The address it arrived at, with the path as it was sent.
    pub url: String,
    pub status: u16,
}

impl Nginx {
    /// Is there an nginx on this machine?
    pub fn is_installed() -> bool {
        PROGRAMS
            .iter()
            .any(|program| Command::new(program).arg("-v").output().is_ok())
    }

    /// Serves each folder at its address, all at one free port, with its files in `workspace`.
    pub async fn start(workspace: &Path, sites: &[(IpAddr, PathBuf)]) -> Self {
        let port = free_port(sites);
        let config = workspace.join("nginx.conf");
        fs::write(&config, configuration(workspace, sites, port)).unwrap();
        let program = PROGRAMS
            .iter()
            .find(|program| Command::new(program).arg("-v").output().is_ok())
            .unwrap();
        let errors = fs::File::create(workspace.join("nginx-errors")).unwrap();
        let child = Command::new(program)
            .arg("-p")
            .arg(workspace)
            .arg("-c")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .unwrap();
        let nginx = Nginx {
            child,
            log: workspace.join("access.log"),
            port,
        };
        let is_up = || {
            sites
                .iter()
                .all(|(address, _)| TcpStream::connect((*address, port)).is_ok())
        };
        let up = patience::look(Duration::from_secs(10), async || is_up().then_some(())).await;
        assert!(
            up.is_some(),
            "{}",
            fs::read_to_string(workspace.join("nginx-errors")).unwrap()
        );
        nginx
    }

    /// The port at every address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What was requested so far.
    pub fn requests(&self) -> Vec<Request> {
        let log = fs::read_to_string(&self.log).unwrap();
        let request = |line: &str| {
            let (status, url) = line.split_once(' ')?;
            Some(Request {
                url: url.to_owned(),
                status: status.parse().ok()?,
            })
        };
        log.lines().filter_map(request).collect()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port(sites: &[(IpAddr, PathBuf)]) -> u16 {
    let is_free = |port| {
        sites
            .iter()
            .all(|(address, _)| TcpListener::bind((*address, port)).is_ok())
    };
    let candidates = (0..50).map(|_| {
        let listener = TcpListener::bind((sites[0].0, 0)).unwrap();
        listener.local_addr().unwrap().port()
    });
    candidates
        .into_iter()
        .find(|port| is_free(*port))
        .expect("a port is free on all addresses")
}

/// One process only, so that ending it ends everything; all paths within the workspace, so that no
/// root is needed.
fn configuration(workspace: &Path, sites: &[(IpAddr, PathBuf)], port: u16) -> String {
    let at = |name: &str| workspace.join(name).display().to_string();
    let mut text = format!(
        "daemon off;\nmaster_process off;\npid {pid};\nerror_log stderr;\nevents {{}}\nhttp {{\n\
         types {{ text/html html; text/css css; text/javascript js; image/svg+xml svg; text/plain txt md; }}\n\
         default_type application/octet-stream;\nlog_format plain '$status $scheme://$http_host$request_uri';\n\
         access_log {log} plain;\n",
        pid = at("nginx.pid"),
        log = at("access.log"),
    );
    for name in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        let _ = writeln!(text, "{name}_temp_path {};", at(name));
    }
    for (address, folder) in sites {
        let _ = writeln!(
            text,
            "server {{ listen {address}:{port}; server_name {address}; root {}; }}",
            folder.display()
        );
    }
    text + "}\n"
}
