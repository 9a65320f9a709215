PRAGMA secure_delete = ON;--> statement-breakpoint
ALTER TABLE `webhooks` ADD `sealed_headers` text;--> statement-breakpoint
ALTER TABLE `webhooks` ADD `unresolved_at` integer;--> statement-breakpoint
UPDATE `deliveries` SET `request_headers` = NULL WHERE `request_headers` IS NOT NULL;--> statement-breakpoint
PRAGMA secure_delete = OFF;