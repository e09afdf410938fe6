//! `--help` of every command, kept in a file: a change of the interface is seen in review.

use std::fmt::Write;

use clap::{Command, CommandFactory};

use crate::args::Cli;

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tests/help.txt");

/// The commands that do something, each with its whole name.
fn leaves(command: &Command, found: &mut Vec<Command>) {
    let mut subcommands = command.get_subcommands().peekable();
    if subcommands.peek().is_none() {
        found.push(command.clone());
    }
    for subcommand in subcommands.filter(|subcommand| subcommand.get_name() != "help") {
        leaves(subcommand, found);
    }
}

fn root() -> Command {
    let mut root = Cli::command().term_width(100);
    root.build();
    root
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_and_every_flag_is_explained_and_has_an_example() {
    let mut commands = Vec::new();
    leaves(&root(), &mut commands);
    assert!(commands.len() > 35, "{}", commands.len());
    for mut command in commands {
        assert!(command.get_about().is_some(), "{}", command.get_name());
        for arg in command.get_arguments() {
            assert!(
                arg.get_help().is_some(),
                "{} {}",
                command.get_name(),
                arg.get_id()
            );
        }
        let help = command.render_long_help().to_string();
        assert!(help.contains("\nExamples:\n"), "{help}");
    }
}

#[test]
fn help_is_as_kept() {
    let mut commands = Vec::new();
    leaves(&root(), &mut commands);
    let mut help = format!("$ turnpike --help\n{}\n", root().render_long_help());
    for mut command in commands {
        let name = command.get_bin_name().unwrap_or_default().to_owned();
        let text = command.render_long_help().to_string();
        // Kept once, above.
        let (own, rest) = text.split_once("Global options:\n").unwrap();
        let (_, examples) = rest.split_once("[default: table]\n\n").unwrap();
        write!(help, "$ {name} --help\n{own}{examples}\n").unwrap();
    }
    let help: String = help
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect();
    if std::env::var_os("TURNPIKE_KEEP_HELP").is_some() {
        std::fs::write(KEPT, &help).unwrap();
    }
    let kept = std::fs::read_to_string(KEPT).unwrap();
    if let Some((kept, now)) = kept
        .lines()
        .zip(help.lines())
        .find(|(kept, now)| kept != now)
    {
        panic!("help changed: `{kept}` became `{now}`; rerun with TURNPIKE_KEEP_HELP=1");
    }
    assert_eq!(kept.len(), help.len(), "rerun with TURNPIKE_KEEP_HELP=1");
}
