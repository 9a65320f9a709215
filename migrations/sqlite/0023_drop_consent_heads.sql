DROP TABLE `consent_heads`;
--> statement-breakpoint
DELETE FROM `instance_values` WHERE `name` = 'consent_heads';