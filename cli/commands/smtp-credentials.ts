import type { Action } from "../lib/context"
import { usage } from "../lib/errors"
import { type SubmissionServer, submissionServer } from "../lib/smtp-server"

interface SmtpCredentialsOptions {
  for?: string
  from?: string
  tls?: string
}

interface Credentials extends SubmissionServer {
  key: string
  from: string
}

interface ProgramConfiguration {
  /** Where the text belongs. */
  file: string
  text: (given: Credentials) => string
}

const USER = "svc"
const NO_KEY = "svc_live_YOUR_KEY"
const NO_SENDER = "you@example.com"
const AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"

/** Prints host, port, user and password, or the ready configuration of one program. */
export const smtpCredentials: Action<SmtpCredentialsOptions> = async (context, options, server) => {
  const target = submissionServer(context, server, options.tls)
  const { host, port, tls } = target
  const given = context.connection().api_key
  const key = given ?? NO_KEY
  const account = { host, port, tls, username: USER, password: key }
  if (options.for === undefined) {
    const rows = Object.entries(account).map(([name, value]) => `${name.padEnd(8)}  ${value}`)
    await context.output.record(account, () => rows.join("\n"), key)
    await context.output.next(`belfry smtp credentials --for ${SMTP_PROGRAMS[0]}`)
  } else {
    const name = options.for.toLowerCase()
    const program = Object.hasOwn(PROGRAMS, name) ? PROGRAMS[name] : undefined
    if (!program) {
      throw usage(`--for: "${options.for}" is not one of ${SMTP_PROGRAMS.join(", ")}`)
    }
    const text = program.text({ ...target, key, from: options.from ?? NO_SENDER })
    const record = { ...account, for: name, file: program.file, text }
    if (context.flags.json !== undefined) await context.output.record(record, () => text)
    else await context.output.raw(`${text.trim()}\n`)
  }
  if (given === null) await context.output.note(`No API key is known: put yours for ${NO_KEY}.`)
  return 0
}

/** `yes` or `no` as a program writes it. */
const choose = (condition: boolean, yes: string, no: string) => (condition ? yes : no)

const isImplicit = ({ tls }: Credentials) => tls === "implicit"

/** Only where the server on this machine has signed its certificate itself. */
const ifLocal = ({ is_local }: Credentials, line: string) => (is_local ? `${line}\n` : "")

const PROGRAMS: Record<string, ProgramConfiguration> = {
  postfix: {
    file: "/etc/postfix/main.cf",
    text: (given) => `
# /etc/postfix/main.cf
relayhost = ${bracketed(given.host)}:${given.port}
smtp_sasl_auth_enable = yes
smtp_sasl_security_options = noanonymous
smtp_sasl_tls_security_options = noanonymous
smtp_sasl_password_maps = inline:{ { ${bracketed(given.host)}:${given.port} = ${USER}:${given.key} } }
smtp_tls_security_level = ${choose(given.is_local, "encrypt", "secure")}
smtp_tls_CAfile = ${AUTHORITIES}
smtp_tls_wrappermode = ${choose(isImplicit(given), "yes", "no")}
# The password stands above, so make the file readable by root only, or move it to a texthash: file.
# apply: postfix reload`,
  },
  msmtp: {
    file: "~/.msmtprc",
    text: (given) => `
# ~/.msmtprc (chmod 600)
account belfry
host ${given.host}
port ${given.port}
from ${given.from}
auth plain
user ${USER}
password ${given.key}
tls ${choose(given.tls === "none", "off", "on")}
tls_starttls ${choose(isImplicit(given), "off", "on")}
${choose(given.is_local, "tls_certcheck off", `tls_trust_file ${AUTHORITIES}`)}

account default : belfry`,
  },
  wordpress: {
    file: "wp-content/mu-plugins/belfry-smtp.php",
    text: (given) => `
<?php
// wp-content/mu-plugins/belfry-smtp.php
add_filter('wp_mail_from', fn () => '${given.from}');
add_action('phpmailer_init', function ($mail) {
    $mail->isSMTP();
    $mail->Host = '${given.host}';
    $mail->Port = ${given.port};
    $mail->SMTPAuth = true;
    $mail->SMTPSecure = '${choose(isImplicit(given), "ssl", "tls")}';
    $mail->Username = '${USER}';
    $mail->Password = '${given.key}';
${ifLocal(given, "    $mail->SMTPOptions = ['ssl' => ['verify_peer' => false, 'verify_peer_name' => false]];")}});`,
  },
  django: {
    file: "settings.py",
    text: (given) => `
# settings.py
EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
EMAIL_HOST = "${given.host}"
EMAIL_PORT = ${given.port}
EMAIL_HOST_USER = "${USER}"
EMAIL_HOST_PASSWORD = "${given.key}"
EMAIL_USE_TLS = ${choose(given.tls === "starttls", "True", "False")}
EMAIL_USE_SSL = ${choose(isImplicit(given), "True", "False")}
DEFAULT_FROM_EMAIL = "${given.from}"
${ifLocal(given, "# A certificate of our own needs: SSL_CERT_FILE=<data_dir>/tls/cert.pem in the environment")}`,
  },
  rails: {
    file: "config/environments/production.rb",
    text: (given) => `
# config/environments/production.rb
config.action_mailer.delivery_method = :smtp
config.action_mailer.default_options = { from: "${given.from}" }
config.action_mailer.smtp_settings = {
  address: "${given.host}",
  port: ${given.port},
  user_name: "${USER}",
  password: "${given.key}",
  authentication: :plain,
  ${choose(isImplicit(given), "tls: true,", "enable_starttls: true,")}
${ifLocal(given, "  openssl_verify_mode: OpenSSL::SSL::VERIFY_NONE,")}}`,
  },
  laravel: {
    file: ".env",
    text: (given) => `
# .env
MAIL_MAILER=smtp
MAIL_SCHEME=${choose(isImplicit(given), "smtps", "smtp")}
MAIL_HOST=${given.host}
MAIL_PORT=${given.port}
MAIL_USERNAME=${USER}
MAIL_PASSWORD=${given.key}
MAIL_ENCRYPTION=${choose(isImplicit(given), "ssl", "tls")}
MAIL_FROM_ADDRESS="${given.from}"
${ifLocal(given, "# A certificate of our own needs 'verify_peer' => false under mailers.smtp in config/mail.php")}`,
  },
  node: {
    file: "mail.js",
    text: (given) => `
// npm install nodemailer
import nodemailer from "nodemailer"

export const transport = nodemailer.createTransport({
  host: "${given.host}",
  port: ${given.port},
  secure: ${isImplicit(given)},
  requireTLS: ${given.tls === "starttls"},
  auth: { user: "${USER}", pass: "${given.key}" },
${ifLocal(given, "  tls: { rejectUnauthorized: false },")}})
// await transport.sendMail({ from: "${given.from}", to: "ann@example.net", subject: "Hi", text: "hello" })`,
  },
  grafana: {
    file: "/etc/grafana/grafana.ini",
    text: (given) => `
# /etc/grafana/grafana.ini
[smtp]
enabled = true
host = ${given.host}:${given.port}
user = ${USER}
password = """${given.key}"""
from_address = ${given.from}
skip_verify = ${given.is_local}
startTLS_policy = ${choose(given.tls === "starttls", "MandatoryStartTLS", "NoStartTLS")}`,
  },
  gitea: {
    file: "/etc/gitea/app.ini",
    text: (given) => `
; /etc/gitea/app.ini
[mailer]
ENABLED = true
PROTOCOL = ${choose(isImplicit(given), "smtps", choose(given.tls === "none", "smtp", "smtp+starttls"))}
SMTP_ADDR = ${given.host}
SMTP_PORT = ${given.port}
USER = ${USER}
PASSWD = \`${given.key}\`
FROM = ${given.from}
FORCE_TRUST_SERVER_CERT = ${given.is_local}`,
  },
}

/** Their names, as `--for` takes them. */
export const SMTP_PROGRAMS = Object.keys(PROGRAMS)

/** Postfix asks for no MX record then. */
const bracketed = (host: string) => `[${host}]`
