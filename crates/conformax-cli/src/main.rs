//! The `conformax` command; everything is in the library.

fn main() -> conformax_cli::ExitCode {
    conformax_cli::prepare_process();
    conformax_cli::run(std::env::args_os(), &mut std::io::stdout(), &mut std::io::stderr())
}
