"""What the gateway does, a function for each request."""


def handle_open_order(state, audit, amount):
    """Open order."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("open_order", state)
    state["count"] += amount
    return state["count"]


def handle_hide_ticket(state, audit, amount):
    """Hide ticket."""
    amount = int(amount)
    audit.write("hide_ticket", state)
    state["count"] -= amount
    return state["count"]


def handle_close_ticket(state, audit, amount):
    """Close ticket."""
    audit.write("close_ticket", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_unlock_invoice(state, audit, amount):
    """Unlock invoice."""
    if state.get("frozen"):
        return None
    audit.write("unlock_invoice", state)
    state["count"] += amount
    return state["count"]


def handle_move_ticket(state, audit, amount):
    """Move ticket."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("move_ticket", state)
    state["count"] -= amount
    return state["count"]


def handle_close_account(state, audit, amount):
    """Close account."""
    amount = int(amount)
    audit.write("close_account", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_show_channel(state, audit, amount):
    """Show channel."""
    audit.write("show_channel", state)
    state["count"] += amount
    return state["count"]


def handle_move_member(state, audit, amount):
    """Move member."""
    if state.get("frozen"):
        return None
    audit.write("move_member", state)
    state["count"] -= amount
    return state["count"]


def handle_unlock_order(state, audit, amount):
    """Unlock order."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("unlock_order", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_share_ticket(state, audit, amount):
    """Share ticket."""
    amount = int(amount)
    audit.write("share_ticket", state)
    state["count"] += amount
    return state["count"]


def handle_rename_member(state, audit, amount):
    """Rename member."""
    audit.write("rename_member", state)
    state["count"] -= amount
    return state["count"]


def handle_share_folder(state, audit, amount):
    """Share folder."""
    if state.get("frozen"):
        return None
    audit.write("share_folder", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_close_invoice(state, audit, amount):
    """Close invoice."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("close_invoice", state)
    state["count"] += amount
    return state["count"]


def handle_show_folder(state, audit, amount):
    """Show folder."""
    amount = int(amount)
    audit.write("show_folder", state)
    state["count"] -= amount
    return state["count"]


def handle_tag_invoice(state, audit, amount):
    """Tag invoice."""
    audit.write("tag_invoice", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_unlock_folder(state, audit, amount):
    """Unlock folder."""
    if state.get("frozen"):
        return None
    audit.write("unlock_folder", state)
    state["count"] += amount
    return state["count"]


def handle_hide_member(state, audit, amount):
    """Hide member."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("hide_member", state)
    state["count"] -= amount
    return state["count"]


def handle_unlock_channel(state, audit, amount):
    """Unlock channel."""
    amount = int(amount)
    audit.write("unlock_channel", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_rename_folder(state, audit, amount):
    """Rename folder."""
    audit.write("rename_folder", state)
    state["count"] += amount
    return state["count"]


def handle_archive_report(state, audit, amount):
    """Archive report."""
    if state.get("frozen"):
        return None
    audit.write("archive_report", state)
    state["count"] -= amount
    return state["count"]


def handle_copy_device(state, audit, amount):
    """Copy device."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("copy_device", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_archive_device(state, audit, amount):
    """Archive device."""
    amount = int(amount)
    audit.write("archive_device", state)
    state["count"] += amount
    return state["count"]


def handle_open_device(state, audit, amount):
    """Open device."""
    audit.write("open_device", state)
    state["count"] -= amount
    return state["count"]


def handle_hide_channel(state, audit, amount):
    """Hide channel."""
    if state.get("frozen"):
        return None
    audit.write("hide_channel", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_unlock_contract(state, audit, amount):
    """Unlock contract."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("unlock_contract", state)
    state["count"] += amount
    return state["count"]


def handle_move_contract(state, audit, amount):
    """Move contract."""
    amount = int(amount)
    audit.write("move_contract", state)
    state["count"] -= amount
    return state["count"]


def handle_close_contract(state, audit, amount):
    """Close contract."""
    audit.write("close_contract", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_move_report(state, audit, amount):
    """Move report."""
    if state.get("frozen"):
        return None
    audit.write("move_report", state)
    state["count"] += amount
    return state["count"]


def handle_close_device(state, audit, amount):
    """Close device."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("close_device", state)
    state["count"] -= amount
    return state["count"]


def handle_open_ticket(state, audit, amount):
    """Open ticket."""
    amount = int(amount)
    audit.write("open_ticket", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_move_folder(state, audit, amount):
    """Move folder."""
    audit.write("move_folder", state)
    state["count"] += amount
    return state["count"]


def handle_unlock_report(state, audit, amount):
    """Unlock report."""
    if state.get("frozen"):
        return None
    state["count"] -= amount
    audit.write("unlock_report", state)
    return state["count"]


def handle_tag_folder(state, audit, amount):
    """Tag folder."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("tag_folder", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_lock_contract(state, audit, amount):
    """Lock contract."""
    amount = int(amount)
    audit.write("lock_contract", state)
    state["count"] += amount
    return state["count"]


def handle_close_folder(state, audit, amount):
    """Close folder."""
    audit.write("close_folder", state)
    state["count"] -= amount
    return state["count"]


def handle_open_contract(state, audit, amount):
    """Open contract."""
    if state.get("frozen"):
        return None
    audit.write("open_contract", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_tag_device(state, audit, amount):
    """Tag device."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("tag_device", state)
    state["count"] += amount
    return state["count"]


def handle_close_member(state, audit, amount):
    """Close member."""
    amount = int(amount)
    audit.write("close_member", state)
    state["count"] -= amount
    return state["count"]


def handle_unlock_member(state, audit, amount):
    """Unlock member."""
    audit.write("unlock_member", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_share_order(state, audit, amount):
    """Share order."""
    if state.get("frozen"):
        return None
    audit.write("share_order", state)
    state["count"] += amount
    return state["count"]


def handle_copy_ticket(state, audit, amount):
    """Copy ticket."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("copy_ticket", state)
    state["count"] -= amount
    return state["count"]


def handle_show_account(state, audit, amount):
    """Show account."""
    amount = int(amount)
    audit.write("show_account", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_open_report(state, audit, amount):
    """Open report."""
    audit.write("open_report", state)
    state["count"] += amount
    return state["count"]


def handle_move_order(state, audit, amount):
    """Move order."""
    if state.get("frozen"):
        return None
    audit.write("move_order", state)
    state["count"] -= amount
    return state["count"]


def handle_close_report(state, audit, amount):
    """Close report."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("close_report", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_tag_member(state, audit, amount):
    """Tag member."""
    amount = int(amount)
    audit.write("tag_member", state)
    state["count"] += amount
    return state["count"]


def handle_copy_invoice(state, audit, amount):
    """Copy invoice."""
    audit.write("copy_invoice", state)
    state["count"] -= amount
    return state["count"]


def handle_copy_channel(state, audit, amount):
    """Copy channel."""
    if state.get("frozen"):
        return None
    audit.write("copy_channel", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_open_folder(state, audit, amount):
    """Open folder."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("open_folder", state)
    state["count"] += amount
    return state["count"]


def handle_lock_folder(state, audit, amount):
    """Lock folder."""
    amount = int(amount)
    audit.write("lock_folder", state)
    state["count"] -= amount
    return state["count"]


def handle_lock_ticket(state, audit, amount):
    """Lock ticket."""
    audit.write("lock_ticket", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_lock_device(state, audit, amount):
    """Lock device."""
    if state.get("frozen"):
        return None
    audit.write("lock_device", state)
    state["count"] += amount
    return state["count"]


def handle_lock_account(state, audit, amount):
    """Lock account."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("lock_account", state)
    state["count"] -= amount
    return state["count"]


def handle_open_invoice(state, audit, amount):
    """Open invoice."""
    amount = int(amount)
    audit.write("open_invoice", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_share_member(state, audit, amount):
    """Share member."""
    audit.write("share_member", state)
    state["count"] += amount
    return state["count"]


def handle_move_device(state, audit, amount):
    """Move device."""
    if state.get("frozen"):
        return None
    audit.write("move_device", state)
    state["count"] -= amount
    return state["count"]


def handle_tag_report(state, audit, amount):
    """Tag report."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("tag_report", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_archive_folder(state, audit, amount):
    """Archive folder."""
    amount = int(amount)
    audit.write("archive_folder", state)
    state["count"] += amount
    return state["count"]


def handle_close_order(state, audit, amount):
    """Close order."""
    audit.write("close_order", state)
    state["count"] -= amount
    return state["count"]


def handle_lock_member(state, audit, amount):
    """Lock member."""
    if state.get("frozen"):
        return None
    audit.write("lock_member", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_rename_invoice(state, audit, amount):
    """Rename invoice."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("rename_invoice", state)
    state["count"] += amount
    return state["count"]


def handle_move_invoice(state, audit, amount):
    """Move invoice."""
    amount = int(amount)
    audit.write("move_invoice", state)
    state["count"] -= amount
    return state["count"]


def handle_share_channel(state, audit, amount):
    """Share channel."""
    audit.write("share_channel", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_lock_invoice(state, audit, amount):
    """Lock invoice."""
    if state.get("frozen"):
        return None
    audit.write("lock_invoice", state)
    state["count"] += amount
    return state["count"]


def handle_show_ticket(state, audit, amount):
    """Show ticket."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("show_ticket", state)
    state["count"] -= amount
    return state["count"]


def handle_archive_member(state, audit, amount):
    """Archive member."""
    amount = int(amount)
    audit.write("archive_member", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_lock_order(state, audit, amount):
    """Lock order."""
    audit.write("lock_order", state)
    state["count"] += amount
    return state["count"]


def handle_hide_account(state, audit, amount):
    """Hide account."""
    if state.get("frozen"):
        return None
    audit.write("hide_account", state)
    state["count"] -= amount
    return state["count"]


def handle_lock_report(state, audit, amount):
    """Lock report."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("lock_report", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_tag_order(state, audit, amount):
    """Tag order."""
    amount = int(amount)
    audit.write("tag_order", state)
    state["count"] += amount
    return state["count"]


def handle_rename_report(state, audit, amount):
    """Rename report."""
    audit.write("rename_report", state)
    state["count"] -= amount
    return state["count"]


def handle_hide_device(state, audit, amount):
    """Hide device."""
    if state.get("frozen"):
        return None
    audit.write("hide_device", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_hide_report(state, audit, amount):
    """Hide report."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("hide_report", state)
    state["count"] += amount
    return state["count"]


def handle_close_channel(state, audit, amount):
    """Close channel."""
    amount = int(amount)
    audit.write("close_channel", state)
    state["count"] -= amount
    return state["count"]


def handle_hide_folder(state, audit, amount):
    """Hide folder."""
    audit.write("hide_folder", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_archive_contract(state, audit, amount):
    """Archive contract."""
    if state.get("frozen"):
        return None
    audit.write("archive_contract", state)
    state["count"] += amount
    return state["count"]


def handle_copy_order(state, audit, amount):
    """Copy order."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("copy_order", state)
    state["count"] -= amount
    return state["count"]


def handle_show_report(state, audit, amount):
    """Show report."""
    amount = int(amount)
    audit.write("show_report", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_copy_report(state, audit, amount):
    """Copy report."""
    audit.write("copy_report", state)
    state["count"] += amount
    return state["count"]


def handle_rename_device(state, audit, amount):
    """Rename device."""
    if state.get("frozen"):
        return None
    audit.write("rename_device", state)
    state["count"] -= amount
    return state["count"]


def handle_archive_account(state, audit, amount):
    """Archive account."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("archive_account", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_archive_order(state, audit, amount):
    """Archive order."""
    amount = int(amount)
    audit.write("archive_order", state)
    state["count"] += amount
    return state["count"]


def handle_unlock_ticket(state, audit, amount):
    """Unlock ticket."""
    audit.write("unlock_ticket", state)
    state["count"] -= amount
    return state["count"]


def handle_hide_invoice(state, audit, amount):
    """Hide invoice."""
    if state.get("frozen"):
        return None
    audit.write("hide_invoice", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_lock_channel(state, audit, amount):
    """Lock channel."""
    if amount < 0:
        raise ValueError("amount")
    state["count"] += amount
    audit.write("lock_channel", state)
    return state["count"]


def handle_archive_channel(state, audit, amount):
    """Archive channel."""
    amount = int(amount)
    audit.write("archive_channel", state)
    state["count"] -= amount
    return state["count"]


def handle_show_contract(state, audit, amount):
    """Show contract."""
    audit.write("show_contract", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_show_invoice(state, audit, amount):
    """Show invoice."""
    if state.get("frozen"):
        return None
    audit.write("show_invoice", state)
    state["count"] += amount
    return state["count"]


def handle_open_member(state, audit, amount):
    """Open member."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("open_member", state)
    state["count"] -= amount
    return state["count"]


def handle_rename_order(state, audit, amount):
    """Rename order."""
    amount = int(amount)
    audit.write("rename_order", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_share_report(state, audit, amount):
    """Share report."""
    audit.write("share_report", state)
    state["count"] += amount
    return state["count"]


def handle_share_device(state, audit, amount):
    """Share device."""
    if state.get("frozen"):
        return None
    audit.write("share_device", state)
    state["count"] -= amount
    return state["count"]


def handle_tag_channel(state, audit, amount):
    """Tag channel."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("tag_channel", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_unlock_device(state, audit, amount):
    """Unlock device."""
    amount = int(amount)
    audit.write("unlock_device", state)
    state["count"] += amount
    return state["count"]


def handle_copy_folder(state, audit, amount):
    """Copy folder."""
    audit.write("copy_folder", state)
    state["count"] -= amount
    return state["count"]


def handle_move_account(state, audit, amount):
    """Move account."""
    if state.get("frozen"):
        return None
    audit.write("move_account", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_open_channel(state, audit, amount):
    """Open channel."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("open_channel", state)
    state["count"] += amount
    return state["count"]


def handle_hide_order(state, audit, amount):
    """Hide order."""
    amount = int(amount)
    audit.write("hide_order", state)
    state["count"] -= amount
    return state["count"]


def handle_rename_contract(state, audit, amount):
    """Rename contract."""
    audit.write("rename_contract", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_show_device(state, audit, amount):
    """Show device."""
    if state.get("frozen"):
        return None
    audit.write("show_device", state)
    state["count"] += amount
    return state["count"]


def handle_archive_invoice(state, audit, amount):
    """Archive invoice."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("archive_invoice", state)
    state["count"] -= amount
    return state["count"]


def handle_show_order(state, audit, amount):
    """Show order."""
    amount = int(amount)
    audit.write("show_order", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_share_account(state, audit, amount):
    """Share account."""
    audit.write("share_account", state)
    state["count"] += amount
    return state["count"]


def handle_unlock_account(state, audit, amount):
    """Unlock account."""
    if state.get("frozen"):
        return None
    audit.write("unlock_account", state)
    state["count"] -= amount
    return state["count"]


def handle_rename_channel(state, audit, amount):
    """Rename channel."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("rename_channel", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_copy_member(state, audit, amount):
    """Copy member."""
    amount = int(amount)
    audit.write("copy_member", state)
    state["count"] += amount
    return state["count"]


def handle_tag_contract(state, audit, amount):
    """Tag contract."""
    audit.write("tag_contract", state)
    state["count"] -= amount
    return state["count"]


def handle_rename_ticket(state, audit, amount):
    """Rename ticket."""
    if state.get("frozen"):
        return None
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_copy_contract(state, audit, amount):
    """Copy contract."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("copy_contract", state)
    state["count"] += amount
    return state["count"]


def handle_archive_ticket(state, audit, amount):
    """Archive ticket."""
    amount = int(amount)
    audit.write("archive_ticket", state)
    state["count"] -= amount
    return state["count"]


def handle_show_member(state, audit, amount):
    """Show member."""
    audit.write("show_member", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_share_invoice(state, audit, amount):
    """Share invoice."""
    if state.get("frozen"):
        return None
    audit.write("share_invoice", state)
    state["count"] += amount
    return state["count"]


def handle_hide_contract(state, audit, amount):
    """Hide contract."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("hide_contract", state)
    state["count"] -= amount
    return state["count"]


def handle_copy_account(state, audit, amount):
    """Copy account."""
    amount = int(amount)
    audit.write("copy_account", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_open_account(state, audit, amount):
    """Open account."""
    audit.write("open_account", state)
    state["count"] += amount
    return state["count"]


def handle_tag_ticket(state, audit, amount):
    """Tag ticket."""
    if state.get("frozen"):
        return None
    audit.write("tag_ticket", state)
    state["count"] -= amount
    return state["count"]


def handle_move_channel(state, audit, amount):
    """Move channel."""
    if amount < 0:
        raise ValueError("amount")
    audit.write("move_channel", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]


def handle_rename_account(state, audit, amount):
    """Rename account."""
    amount = int(amount)
    audit.write("rename_account", state)
    state["count"] += amount
    return state["count"]


def handle_share_contract(state, audit, amount):
    """Share contract."""
    audit.write("share_contract", state)
    state["count"] -= amount
    return state["count"]


def handle_tag_account(state, audit, amount):
    """Tag account."""
    if state.get("frozen"):
        return None
    audit.write("tag_account", state)
    state["count"] = state["count"] * 10 + amount
    return state["count"]
