import { html, type Markup } from "./html"
import type { PageLanguage } from "./unsubscribe-words"

const EN = {
  /** What a link asks for: the title of its page, what is about to happen, and its button. */
  magic_link: {
    title: "Sign in",
    about: (app: Markup, address: Markup) => html`Sign in to ${app} as ${address}.`,
    go: "Sign in",
  },
  verify_email: {
    title: "Confirm your email address",
    about: (app: Markup, address: Markup) => html`Confirm for ${app} that ${address} is yours.`,
    go: "Confirm",
  },
  password_reset: {
    title: "Choose a new password",
    about: (app: Markup, address: Markup) => html`For ${address} at ${app}.`,
    go: "Continue",
  },
  invitation: {
    title: "You are invited",
    about: (app: Markup, address: Markup) => html`Join ${app} with the address ${address}.`,
    go: "Accept",
  },
  /** What an invitation to an organization is about. */
  join: (organization: Markup, app: Markup, address: Markup) =>
    html`Join ${organization} at ${app} with the address ${address}.`,
  new_password: "New password",
  save: "Save",
  needs: (least: number) =>
    `Use at least ${least} characters, with an upper-case letter, a lower-case letter, a digit and a symbol. Common passwords are refused.`,
  used_before: "You used this password before. Please choose another one.",
  verified: "Your email address is confirmed",
  changed: "Your password is changed",
  close: "You can close this page.",
  sign_in_now: "Sign in with the new password. All your devices are signed out.",
  expired: "This link works no more",
  ask_again: "The link has expired, or it was used already. Please ask for a new one.",
}

/** The texts of the pages behind links of sign-in mails, in one language. */
export type LinkWords = typeof EN

const DE: LinkWords = {
  magic_link: {
    title: "Anmelden",
    about: (app, address) => html`Bei ${app} als ${address} anmelden.`,
    go: "Anmelden",
  },
  verify_email: {
    title: "E-Mail-Adresse bestätigen",
    about: (app, address) => html`Bestätigen Sie für ${app}, dass ${address} Ihnen gehört.`,
    go: "Bestätigen",
  },
  password_reset: {
    title: "Neues Passwort wählen",
    about: (app, address) => html`Für ${address} bei ${app}.`,
    go: "Weiter",
  },
  invitation: {
    title: "Sie sind eingeladen",
    about: (app, address) => html`Nehmen Sie mit der Adresse ${address} an ${app} teil.`,
    go: "Annehmen",
  },
  join: (organization, app, address) =>
    html`Treten Sie ${organization} bei ${app} mit der Adresse ${address} bei.`,
  new_password: "Neues Passwort",
  save: "Speichern",
  needs: (least) =>
    `Verwenden Sie mindestens ${least} Zeichen, darunter einen Großbuchstaben, einen Kleinbuchstaben, eine Ziffer und ein Sonderzeichen. Häufige Passwörter werden abgelehnt.`,
  used_before: "Dieses Passwort haben Sie schon einmal verwendet. Bitte wählen Sie ein anderes.",
  verified: "Ihre E-Mail-Adresse ist bestätigt",
  changed: "Ihr Passwort ist geändert",
  close: "Sie können diese Seite schließen.",
  sign_in_now: "Melden Sie sich mit dem neuen Passwort an. Alle Ihre Geräte sind abgemeldet.",
  expired: "Dieser Link funktioniert nicht mehr",
  ask_again:
    "Der Link ist abgelaufen oder wurde schon verwendet. Bitte fordern Sie einen neuen an.",
}

const FR: LinkWords = {
  magic_link: {
    title: "Se connecter",
    about: (app, address) => html`Se connecter à ${app} avec ${address}.`,
    go: "Se connecter",
  },
  verify_email: {
    title: "Confirmer votre adresse e-mail",
    about: (app, address) => html`Confirmez pour ${app} que ${address} est à vous.`,
    go: "Confirmer",
  },
  password_reset: {
    title: "Choisir un nouveau mot de passe",
    about: (app, address) => html`Pour ${address} sur ${app}.`,
    go: "Continuer",
  },
  invitation: {
    title: "Vous avez une invitation",
    about: (app, address) => html`Rejoignez ${app} avec l’adresse ${address}.`,
    go: "Accepter",
  },
  join: (organization, app, address) =>
    html`Rejoignez ${organization} sur ${app} avec l’adresse ${address}.`,
  new_password: "Nouveau mot de passe",
  save: "Enregistrer",
  needs: (least) =>
    `Utilisez au moins ${least} caractères, dont une majuscule, une minuscule, un chiffre et un symbole. Les mots de passe courants sont refusés.`,
  used_before: "Vous avez déjà utilisé ce mot de passe. Veuillez en choisir un autre.",
  verified: "Votre adresse e-mail est confirmée",
  changed: "Votre mot de passe est changé",
  close: "Vous pouvez fermer cette page.",
  sign_in_now: "Connectez-vous avec le nouveau mot de passe. Tous vos appareils sont déconnectés.",
  expired: "Ce lien ne fonctionne plus",
  ask_again: "Le lien a expiré ou a déjà été utilisé. Veuillez en demander un nouveau.",
}

const ES: LinkWords = {
  magic_link: {
    title: "Iniciar sesión",
    about: (app, address) => html`Iniciar sesión en ${app} con ${address}.`,
    go: "Iniciar sesión",
  },
  verify_email: {
    title: "Confirmar su correo electrónico",
    about: (app, address) => html`Confirme para ${app} que ${address} es suyo.`,
    go: "Confirmar",
  },
  password_reset: {
    title: "Elegir una contraseña nueva",
    about: (app, address) => html`Para ${address} en ${app}.`,
    go: "Continuar",
  },
  invitation: {
    title: "Tiene una invitación",
    about: (app, address) => html`Únase a ${app} con la dirección ${address}.`,
    go: "Aceptar",
  },
  join: (organization, app, address) =>
    html`Únase a ${organization} en ${app} con la dirección ${address}.`,
  new_password: "Contraseña nueva",
  save: "Guardar",
  needs: (least) =>
    `Use al menos ${least} caracteres, con una mayúscula, una minúscula, un número y un símbolo. No se aceptan contraseñas comunes.`,
  used_before: "Ya usó esta contraseña. Elija otra.",
  verified: "Su correo electrónico está confirmado",
  changed: "Su contraseña ha cambiado",
  close: "Puede cerrar esta página.",
  sign_in_now:
    "Inicie sesión con la contraseña nueva. Se cerró la sesión en todos sus dispositivos.",
  expired: "Este enlace ya no funciona",
  ask_again: "El enlace ha caducado o ya se usó. Pida uno nuevo.",
}

const AR: LinkWords = {
  magic_link: {
    title: "تسجيل الدخول",
    about: (app, address) => html`تسجيل الدخول إلى ${app} باسم ${address}.`,
    go: "تسجيل الدخول",
  },
  verify_email: {
    title: "تأكيد بريدك الإلكتروني",
    about: (app, address) => html`أكّد لـ ${app} أن العنوان ${address} يخصك.`,
    go: "تأكيد",
  },
  password_reset: {
    title: "اختيار كلمة مرور جديدة",
    about: (app, address) => html`للحساب ${address} في ${app}.`,
    go: "متابعة",
  },
  invitation: {
    title: "لديك دعوة",
    about: (app, address) => html`انضم إلى ${app} بالعنوان ${address}.`,
    go: "قبول",
  },
  join: (organization, app, address) =>
    html`انضم إلى ${organization} في ${app} بالعنوان ${address}.`,
  new_password: "كلمة المرور الجديدة",
  save: "حفظ",
  needs: (least) =>
    `استخدم ${least} أحرف على الأقل، منها حرف كبير وحرف صغير ورقم ورمز. لا تُقبل كلمات المرور الشائعة.`,
  used_before: "استخدمت كلمة المرور هذه من قبل. اختر كلمة أخرى.",
  verified: "تم تأكيد بريدك الإلكتروني",
  changed: "تم تغيير كلمة المرور",
  close: "يمكنك إغلاق هذه الصفحة.",
  sign_in_now: "سجّل الدخول بكلمة المرور الجديدة. تم تسجيل الخروج من جميع أجهزتك.",
  expired: "لم يعد هذا الرابط يعمل",
  ask_again: "انتهت صلاحية الرابط أو تم استخدامه من قبل. يرجى طلب رابط جديد.",
}

export const LINK_WORDS: Record<PageLanguage, LinkWords> = {
  en: EN,
  de: DE,
  fr: FR,
  es: ES,
  ar: AR,
}
