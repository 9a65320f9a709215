/** Settings of a server in this process that listens where nothing else does, and says little. */
export const OWN_PORTS = {
  "storage.ballast_mb": 0,
  "http.listen": "127.0.0.1:0",
  "mailbox.listen": "127.0.0.1:0",
  "smtp.submission.listen": "127.0.0.1:0",
  "smtp.inbound.listen": "127.0.0.1:0",
  "log.level": "error",
}
