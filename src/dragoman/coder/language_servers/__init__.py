"""Errors that language servers see in a session's files, after an edit and when the model asks for them.

`servers.LanguageServers` owns those of one session. A server is started with the first edit, or the first call of
`diagnostics`, that concerns a file of its language, and only in folders that the user trusts: some run build scripts
and plugins of the project. Everything that imports `lsprotocol` and `pygls` stands in `messages`, which is loaded then,
in a thread, and not before.

What a server says is data: it is bounded, cut and escaped, and starts or allows nothing. Where there is no server, or
one that fails, nothing is said and nothing waits.
"""
