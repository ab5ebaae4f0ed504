//! `apoidea invite` and `apoidea join`.

use crate::{
    arguments::{JoinOptions, Output, Place},
    client::Client,
    control::print_json,
};
use anyhow::{Context, bail};
use apoidea_peer::{
    Invite, InviteAnswer, InviteContents, InviteRequest, JoinRequest, Joined, Membership,
};
use std::{io, io::IsTerminal, process::ExitCode};

const AT_NEXT_START: &str = "It counts from the next start of the peer on.";

pub fn invite(place: &Place, output: Output) -> anyhow::Result<ExitCode> {
    let invite: InviteAnswer = Client::connect(place)?.get("/api/invite")?;
    if output.json {
        return print_json(&invite);
    }
    println!("{}", invite.link);
    if io::stdout().is_terminal() {
        println!("\n{}", invite.text);
        let peers = invite.contents.peers.len();
        let network = &invite.contents.network;
        println!("It leads to {peers} peers of the network {network:?}: apoidea join LINK");
    }
    Ok(ExitCode::SUCCESS)
}

pub fn join(place: &Place, options: &JoinOptions) -> anyhow::Result<ExitCode> {
    let folder = place.data()?;
    if let Some(name) = &options.found {
        let founded = Membership::found(name)?;
        founded.save(&folder)?;
        println!(
            "The private network {:?} is yours. {AT_NEXT_START}",
            founded.name.as_str()
        );
        println!("Then `apoidea invite` makes invites to it.");
        return Ok(ExitCode::SUCCESS);
    }
    if options.leave {
        Membership::forget(&folder)?;
        println!("Back to the network of the settings. {AT_NEXT_START}");
        return Ok(ExitCode::SUCCESS);
    }
    let link = options.link.clone().context("an invite is missing")?;
    let invite: Invite = link.parse()?;
    let Ok(client) = Client::connect(place) else {
        return join_later(place, options, &invite);
    };
    let request = InviteRequest { link: link.clone() };
    let contents: InviteContents = client.post("/api/invite", Some(&request))?;
    ask_first(options, &Membership::of(&invite), contents.is_own)?;
    let request = JoinRequest {
        link,
        agreed: options.yes,
    };
    match client.post("/api/join", Some(&request))? {
        Joined::Called { peers, answered: 0 } => {
            println!(
                "None of the {peers} peers answers now. They are remembered and called again."
            );
        }
        Joined::Called { peers, answered } => println!("{answered} of {peers} peers answered."),
        Joined::NextStart { network } => {
            println!("This peer belongs to the network {network:?}. {AT_NEXT_START}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Follows an invite while no peer runs.
fn join_later(place: &Place, options: &JoinOptions, invite: &Invite) -> anyhow::Result<ExitCode> {
    let folder = place.data()?;
    let mut current = place.config()?.network;
    if let Some(chosen) = Membership::load(&folder)? {
        (current.name, current.is_private) = (chosen.name, chosen.is_private);
    }
    let invited = Membership::of(invite);
    let is_own = (&invited.name, invited.is_private) == (&current.name, current.is_private);
    ask_first(options, &invited, is_own)?;
    invited.save(&folder)?;
    println!("{} peers are called at the next start.", invite.peers.len());
    Ok(ExitCode::SUCCESS)
}

/// Another network is entered only by somebody who has said so.
fn ask_first(options: &JoinOptions, invited: &Membership, is_own: bool) -> anyhow::Result<()> {
    if is_own || options.yes {
        return Ok(());
    }
    let private = match invited.is_private {
        true => ", a private one whose peers may name private addresses",
        false => "",
    };
    bail!(
        "the invite is for another network, {:?}{private}; add --yes to go there",
        invited.name.as_str()
    )
}
