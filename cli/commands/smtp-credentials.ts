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
  lines: (given: Credentials) => (string | false)[]
}

const USER = "svc"
const NO_KEY = "svc_live_YOUR_KEY"
const NO_SENDER = "you@example.com"
/** Where `belfry up` and `belfry serve` keep the certificate that they signed themselves. */
const OWN_CERTIFICATE = "DATA_DIR/tls/cert.pem"
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
    const lines = program.lines({ ...target, key, from: options.from ?? NO_SENDER })
    const text = lines.filter((line) => line !== false).join("\n")
    const record = { ...account, for: name, file: program.file, text }
    if (context.flags.json !== undefined) await context.output.record(record, () => text)
    else await context.output.raw(`${text}\n`)
  }
  if (given === null) await context.output.note(`No API key is known: put yours for ${NO_KEY}.`)
  return 0
}

const isImplicit = ({ tls }: Credentials) => tls === "implicit"

const PROGRAMS: Record<string, ProgramConfiguration> = {
  postfix: {
    file: "/etc/postfix/main.cf",
    lines: (given) => [
      "# /etc/postfix/main.cf (readable by root only, because it holds the key)",
      `relayhost = [${given.host}]:${given.port}`,
      "smtp_sasl_auth_enable = yes",
      "smtp_sasl_security_options = noanonymous",
      "smtp_sasl_tls_security_options = noanonymous",
      `smtp_sasl_password_maps = inline:{ { [${given.host}]:${given.port} = ${USER}:${given.key} } }`,
      `smtp_tls_security_level = ${given.is_local ? "encrypt" : "secure"}`,
      `smtp_tls_CAfile = ${AUTHORITIES}`,
      `smtp_tls_wrappermode = ${isImplicit(given) ? "yes" : "no"}`,
    ],
  },
  msmtp: {
    file: "~/.msmtprc",
    lines: (given) => [
      "# ~/.msmtprc (chmod 600)",
      "account belfry",
      `host ${given.host}`,
      `port ${given.port}`,
      `from ${given.from}`,
      "auth plain",
      `user ${USER}`,
      `password ${given.key}`,
      `tls ${given.tls === "none" ? "off" : "on"}`,
      `tls_starttls ${isImplicit(given) ? "off" : "on"}`,
      given.is_local ? "tls_certcheck off" : `tls_trust_file ${AUTHORITIES}`,
      "account default : belfry",
    ],
  },
  wordpress: {
    file: "wp-content/mu-plugins/belfry-smtp.php",
    lines: (given) => [
      "<?php",
      "// wp-content/mu-plugins/belfry-smtp.php",
      `add_filter('wp_mail_from', fn () => '${given.from}');`,
      "add_action('phpmailer_init', function ($mail) {",
      "    $mail->isSMTP();",
      `    $mail->Host = '${given.host}';`,
      `    $mail->Port = ${given.port};`,
      "    $mail->SMTPAuth = true;",
      `    $mail->SMTPSecure = '${isImplicit(given) ? "ssl" : "tls"}';`,
      `    $mail->Username = '${USER}';`,
      `    $mail->Password = '${given.key}';`,
      given.is_local && "    $mail->SMTPOptions = ['ssl' => ['verify_peer' => false,",
      given.is_local && "        'verify_peer_name' => false, 'allow_self_signed' => true]];",
      "});",
    ],
  },
  django: {
    file: "settings.py",
    lines: (given) => [
      "# settings.py",
      'EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"',
      `EMAIL_HOST = "${given.host}"`,
      `EMAIL_PORT = ${given.port}`,
      `EMAIL_HOST_USER = "${USER}"`,
      `EMAIL_HOST_PASSWORD = "${given.key}"`,
      `EMAIL_USE_TLS = ${given.tls === "starttls" ? "True" : "False"}`,
      `EMAIL_USE_SSL = ${isImplicit(given) ? "True" : "False"}`,
      `DEFAULT_FROM_EMAIL = "${given.from}"`,
      given.is_local && `# in the environment: SSL_CERT_FILE=${OWN_CERTIFICATE}`,
    ],
  },
  rails: {
    file: "config/environments/production.rb",
    lines: (given) => [
      "# config/environments/production.rb",
      "config.action_mailer.delivery_method = :smtp",
      `config.action_mailer.default_options = { from: "${given.from}" }`,
      "config.action_mailer.smtp_settings = {",
      `  address: "${given.host}",`,
      `  port: ${given.port},`,
      `  user_name: "${USER}",`,
      `  password: "${given.key}",`,
      "  authentication: :plain,",
      isImplicit(given) ? "  tls: true," : "  enable_starttls: true,",
      given.is_local && "  openssl_verify_mode: OpenSSL::SSL::VERIFY_NONE,",
      "}",
    ],
  },
  laravel: {
    file: ".env",
    lines: (given) => [
      "# .env",
      "MAIL_MAILER=smtp",
      `MAIL_SCHEME=${isImplicit(given) ? "smtps" : "smtp"}`,
      `MAIL_HOST=${given.host}`,
      `MAIL_PORT=${given.port}`,
      `MAIL_USERNAME=${USER}`,
      `MAIL_PASSWORD=${given.key}`,
      `MAIL_ENCRYPTION=${isImplicit(given) ? "ssl" : "tls"}`,
      `MAIL_FROM_ADDRESS="${given.from}"`,
      given.is_local && "# in config/mail.php, under mailers.smtp: 'verify_peer' => false",
    ],
  },
  node: {
    file: "mail.js",
    lines: (given) => [
      "// npm install nodemailer",
      'import nodemailer from "nodemailer"',
      "",
      "export const transport = nodemailer.createTransport({",
      `  host: "${given.host}",`,
      `  port: ${given.port},`,
      `  secure: ${isImplicit(given)},`,
      `  requireTLS: ${given.tls === "starttls"},`,
      `  auth: { user: "${USER}", pass: "${given.key}" },`,
      given.is_local && "  tls: { rejectUnauthorized: false },",
      "})",
      `// transport.sendMail({ from: "${given.from}", to, subject, text })`,
    ],
  },
  grafana: {
    file: "/etc/grafana/grafana.ini",
    lines: (given) => [
      "# /etc/grafana/grafana.ini",
      "[smtp]",
      "enabled = true",
      `host = ${given.host}:${given.port}`,
      `user = ${USER}`,
      `password = """${given.key}"""`,
      `from_address = ${given.from}`,
      `skip_verify = ${given.is_local}`,
      `startTLS_policy = ${given.tls === "starttls" ? "MandatoryStartTLS" : "NoStartTLS"}`,
    ],
  },
  gitea: {
    file: "/etc/gitea/app.ini",
    lines: (given) => [
      "; /etc/gitea/app.ini",
      "[mailer]",
      "ENABLED = true",
      `PROTOCOL = ${{ starttls: "smtp+starttls", implicit: "smtps", none: "smtp" }[given.tls]}`,
      `SMTP_ADDR = ${given.host}`,
      `SMTP_PORT = ${given.port}`,
      `USER = ${USER}`,
      `PASSWD = \`${given.key}\``,
      `FROM = ${given.from}`,
      `FORCE_TRUST_SERVER_CERT = ${given.is_local}`,
    ],
  },
}

/** Their names, as `--for` takes them. */
export const SMTP_PROGRAMS = Object.keys(PROGRAMS)
