<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de">
<context>
    <name>AboutPage</name>
    <message>
        <source>Free software under the MIT licence. It contains:</source>
        <translation>Freie Software unter der MIT-Lizenz. Sie enthält:</translation>
    </message>
    <message>
        <source>Licences</source>
        <translation>Lizenzen</translation>
    </message>
</context>
<context>
    <name>AcceptanceChart</name>
    <message>
        <source>Position</source>
        <translation>Position</translation>
    </message>
    <message>
        <source>At first</source>
        <translation>Anfangs</translation>
    </message>
    <message>
        <source>Now</source>
        <translation>Jetzt</translation>
    </message>
    <message>
        <source>Drafts that would be kept, by position</source>
        <translation>Entwürfe, die angenommen würden, nach Position</translation>
    </message>
    <message>
        <source>position in the draft</source>
        <translation>Position im Entwurf</translation>
    </message>
    <message>
        <source>at first</source>
        <translation>anfangs</translation>
    </message>
    <message>
        <source>now</source>
        <translation>jetzt</translation>
    </message>
    <message>
        <source>It begins once the conversations are written.</source>
        <translation>Es beginnt, sobald die Gespräche geschrieben sind.</translation>
    </message>
    <message>
        <source>Kept by position: {0}</source>
        <translation>Angenommen nach Position: {0}</translation>
    </message>
    <message>
        <source>nothing yet</source>
        <translation>noch nichts</translation>
    </message>
</context>
<context>
    <name>Actions</name>
    <message>
        <source>File</source>
        <translation>Ablage</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>Bearbeiten</translation>
    </message>
    <message>
        <source>View</source>
        <translation>Darstellung</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>Server</source>
        <translation>Server</translation>
    </message>
    <message>
        <source>Window</source>
        <translation>Fenster</translation>
    </message>
    <message>
        <source>Help</source>
        <translation>Hilfe</translation>
    </message>
    <message>
        <source>Settings…</source>
        <translation>Einstellungen …</translation>
    </message>
    <message>
        <source>Quit Slipstream</source>
        <translation>Slipstream beenden</translation>
    </message>
    <message>
        <source>New Chat</source>
        <translation>Neuer Chat</translation>
    </message>
    <message>
        <source>Import Chat…</source>
        <translation>Chat importieren …</translation>
    </message>
    <message>
        <source>Export Chat…</source>
        <translation>Chat exportieren …</translation>
    </message>
    <message>
        <source>Delete Chat</source>
        <translation>Chat löschen</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>Widerrufen</translation>
    </message>
    <message>
        <source>Redo</source>
        <translation>Wiederholen</translation>
    </message>
    <message>
        <source>Cut</source>
        <translation>Ausschneiden</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Paste</source>
        <translation>Einsetzen</translation>
    </message>
    <message>
        <source>Select All</source>
        <translation>Alles auswählen</translation>
    </message>
    <message>
        <source>Find…</source>
        <translation>Suchen …</translation>
    </message>
    <message>
        <source>Find Next</source>
        <translation>Weitersuchen</translation>
    </message>
    <message>
        <source>Search All Chats</source>
        <translation>Alle Chats durchsuchen</translation>
    </message>
    <message>
        <source>Copy Last Reply</source>
        <translation>Letzte Antwort kopieren</translation>
    </message>
    <message>
        <source>Edit Last Message</source>
        <translation>Letzte Nachricht bearbeiten</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>Senden</translation>
    </message>
    <message>
        <source>New Line</source>
        <translation>Neue Zeile</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Anhalten</translation>
    </message>
    <message>
        <source>Regenerate</source>
        <translation>Neu erzeugen</translation>
    </message>
    <message>
        <source>Previous Branch</source>
        <translation>Voriger Zweig</translation>
    </message>
    <message>
        <source>Next Branch</source>
        <translation>Nächster Zweig</translation>
    </message>
    <message>
        <source>Choose a Pair…</source>
        <translation>Paar wählen …</translation>
    </message>
    <message>
        <source>Load Last Pair</source>
        <translation>Letztes Paar laden</translation>
    </message>
    <message>
        <source>Unload</source>
        <translation>Entladen</translation>
    </message>
    <message>
        <source>Start or Stop Race</source>
        <translation>Rennen starten oder anhalten</translation>
    </message>
    <message>
        <source>Start or Stop Server</source>
        <translation>Server starten oder anhalten</translation>
    </message>
    <message>
        <source>Copy Base URL</source>
        <translation>Basis-URL kopieren</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>Chat</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>Telemetry</source>
        <translation>Telemetrie</translation>
    </message>
    <message>
        <source>Race</source>
        <translation>Rennen</translation>
    </message>
    <message>
        <source>Server &amp; Agents</source>
        <translation>Server &amp; Agenten</translation>
    </message>
    <message>
        <source>Parameters</source>
        <translation>Parameter</translation>
    </message>
    <message>
        <source>Telemetry in Chat</source>
        <translation>Telemetrie im Chat</translation>
    </message>
    <message>
        <source>Sidebar</source>
        <translation>Seitenleiste</translation>
    </message>
    <message>
        <source>Zoom In</source>
        <translation>Vergrößern</translation>
    </message>
    <message>
        <source>Zoom Out</source>
        <translation>Verkleinern</translation>
    </message>
    <message>
        <source>Actual Size</source>
        <translation>Originalgröße</translation>
    </message>
    <message>
        <source>Minimise</source>
        <translation>Im Dock ablegen</translation>
    </message>
    <message>
        <source>Close Window</source>
        <translation>Fenster schließen</translation>
    </message>
    <message>
        <source>Command Palette</source>
        <translation>Befehlspalette</translation>
    </message>
    <message>
        <source>Keyboard Shortcuts</source>
        <translation>Tastaturkurzbefehle</translation>
    </message>
    <message>
        <source>Diagnostics Report…</source>
        <translation>Diagnosebericht …</translation>
    </message>
    <message>
        <source>Show Logs</source>
        <translation>Protokolle zeigen</translation>
    </message>
    <message>
        <source>Calibrate</source>
        <translation>Kalibrieren</translation>
    </message>
</context>
<context>
    <name>AgentCard</name>
    <message>
        <source>Set up…</source>
        <translation>Einrichten …</translation>
    </message>
    <message>
        <source>Set up {0}</source>
        <translation>{0} einrichten</translation>
    </message>
    <message>
        <source>Test</source>
        <translation>Testen</translation>
    </message>
    <message>
        <source>Test {0}</source>
        <translation>{0} testen</translation>
    </message>
    <message>
        <source>Undo…</source>
        <translation>Rückgängig …</translation>
    </message>
    <message>
        <source>Undo the set-up of {0}</source>
        <translation>Einrichtung von {0} rückgängig machen</translation>
    </message>
    <message>
        <source>The exact change to {0}</source>
        <translation>Die genaue Änderung an {0}</translation>
    </message>
    <message>
        <source>Write this</source>
        <translation>So schreiben</translation>
    </message>
    <message>
        <source>Copy instead</source>
        <translation>Stattdessen kopieren</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Undo this</source>
        <translation>Dies rückgängig machen</translation>
    </message>
    <message>
        <source>Preview change…</source>
        <translation>Änderung ansehen …</translation>
    </message>
    <message>
        <source>looking for it…</source>
        <translation>wird gesucht …</translation>
    </message>
    <message>
        <source>working out the change…</source>
        <translation>die Änderung wird berechnet …</translation>
    </message>
    <message>
        <source>writing…</source>
        <translation>wird geschrieben …</translation>
    </message>
    <message>
        <source>it is reading a file with a tool… this may take minutes</source>
        <translation>liest gerade eine Datei mit einem Werkzeug … das kann Minuten dauern</translation>
    </message>
    <message>
        <source>last request {0}</source>
        <translation>letzte Anfrage {0}</translation>
    </message>
    <message>
        <source>set up</source>
        <translation>eingerichtet</translation>
    </message>
    <message>
        <source>not installed</source>
        <translation>nicht installiert</translation>
    </message>
    <message>
        <source>{0} found, not set up</source>
        <translation>{0} gefunden, nicht eingerichtet</translation>
    </message>
    <message>
        <source>It was</source>
        <translation>Das war</translation>
    </message>
    <message>
        <source>The test passed in {0} s: it {1}.</source>
        <translation>Test bestanden in {0} s: {1}.</translation>
    </message>
    <message>
        <source>The test failed: {1}</source>
        <translation>Der Test schlug fehl: {1}</translation>
    </message>
    <message>
        <source>Changed {0}.</source>
        <translation>{0} geändert.</translation>
    </message>
    <message>
        <source>Install it with: {0}</source>
        <translation>Installieren mit: {0}</translation>
    </message>
    <message>
        <source>Nothing of what Slipstream wrote is left.</source>
        <translation>Von dem, was Slipstream schrieb, ist nichts mehr da.</translation>
    </message>
    <message>
        <source>It is set up already; nothing would change.</source>
        <translation>Schon eingerichtet; es würde sich nichts ändern.</translation>
    </message>
    <message>
        <source>{0} s ago</source>
        <translation>vor {0} s</translation>
    </message>
    <message>
        <source>{0} min ago</source>
        <translation>vor {0} min</translation>
    </message>
    <message>
        <source>{0} h ago</source>
        <translation>vor {0} h</translation>
    </message>
</context>
<context>
    <name>AnswerActions</name>
    <message>
        <source>Regenerate</source>
        <translation>Neu erzeugen</translation>
    </message>
    <message>
        <source>Regenerate this answer</source>
        <translation>Diese Antwort neu erzeugen</translation>
    </message>
    <message>
        <source>Other ways to regenerate</source>
        <translation>Andere Arten, neu zu erzeugen</translation>
    </message>
    <message>
        <source>Copy this answer as Markdown</source>
        <translation>Diese Antwort als Markdown kopieren</translation>
    </message>
    <message>
        <source>Branch: a new chat from here</source>
        <translation>Abzweigen: ein neuer Chat ab hier</translation>
    </message>
    <message>
        <source>Why this speed</source>
        <translation>Warum so schnell</translation>
    </message>
    <message>
        <source>Verify</source>
        <translation>Prüfen</translation>
    </message>
    <message>
        <source>Run it again without drafts and compare every token</source>
        <translation>Noch einmal ohne Entwürfe rechnen und jedes Token vergleichen</translation>
    </message>
    <message>
        <source>Copy this answer&apos;s facts as JSON</source>
        <translation>Die Angaben zu dieser Antwort als JSON kopieren</translation>
    </message>
    <message>
        <source>With another seed</source>
        <translation>Mit anderem Startwert</translation>
    </message>
    <message>
        <source>With the same seed</source>
        <translation>Mit demselben Startwert</translation>
    </message>
    <message>
        <source>Without a drafter, same seed</source>
        <translation>Ohne Entwurfsmodell, gleicher Startwert</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>Kopiert</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>{0} and {1}</source>
        <translation>{0} und {1}</translation>
    </message>
    <message numerus="yes">
        <source>✓ Identical, %Ln token(s)</source>
        <translation>
            <numerusform>✓ Gleich, %Ln Token</numerusform>
            <numerusform>✓ Gleich, %Ln Tokens</numerusform>
        </translation>
    </message>
    <message>
        <source>The model alone says the same with this prompt, options and seed. Checked {0}</source>
        <translation>Das Modell allein sagt mit diesem Prompt, diesen Optionen und diesem Startwert dasselbe. Geprüft {0}</translation>
    </message>
    <message>
        <source>≈ Numeric tie at token {0}, margins {1}</source>
        <translation>≈ Gleichstand bei Token {0}, Abstände {1}</translation>
    </message>
    <message>
        <source>Two choices were closer than the rounding of the number format. Checked {0}</source>
        <translation>Zwei Möglichkeiten lagen enger beieinander, als das Zahlenformat rundet. Geprüft {0}</translation>
    </message>
    <message>
        <source>✗ Different at token {0}</source>
        <translation>✗ Anders ab Token {0}</translation>
    </message>
    <message>
        <source>, margins {0}</source>
        <translation>, Abstände {0}</translation>
    </message>
    <message>
        <source>This is a bug. Please report it. Checked {0}</source>
        <translation>Das ist ein Fehler. Bitte melden. Geprüft {0}</translation>
    </message>
    <message numerus="yes">
        <source>Verifying, {0} of %Ln token(s)</source>
        <translation>
            <numerusform>Prüft, {0} von %Ln Token</numerusform>
            <numerusform>Prüft, {0} von %Ln Tokens</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>AppliedSettings</name>
    <message>
        <source>Opening at login could not be changed: {0}</source>
        <translation>Das Öffnen bei der Anmeldung ließ sich nicht ändern: {0}</translation>
    </message>
</context>
<context>
    <name>BannerBar</name>
    <message>
        <source>Details</source>
        <translation>Einzelheiten</translation>
    </message>
    <message>
        <source>Close this message</source>
        <translation>Diese Meldung schließen</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message numerus="yes">
        <source>%n messages</source>
        <translation>
            <numerusform>%n Meldung</numerusform>
            <numerusform>%n Meldungen</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>CalibrationPanel</name>
    <message>
        <source>Measured on this machine</source>
        <translation>Auf diesem Rechner gemessen</translation>
    </message>
    <message>
        <source>What was measured</source>
        <translation>Was gemessen wurde</translation>
    </message>
    <message>
        <source>Calibration</source>
        <translation>Kalibrierung</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Anhalten</translation>
    </message>
    <message>
        <source>Stop calibrating</source>
        <translation>Kalibrieren anhalten</translation>
    </message>
    <message>
        <source>Measure anyway</source>
        <translation>Trotzdem messen</translation>
    </message>
    <message>
        <source>Calibrate</source>
        <translation>Kalibrieren</translation>
    </message>
    <message>
        <source>Takes some seconds. Auto then knows from the first round what pays.</source>
        <translation>Dauert einige Sekunden. „Auto“ weiß dann von der ersten Runde an, was sich lohnt.</translation>
    </message>
    <message>
        <source>Calibrate again</source>
        <translation>Neu kalibrieren</translation>
    </message>
    <message>
        <source>Measured {0}.</source>
        <translation>Gemessen am {0}.</translation>
    </message>
    <message>
        <source>Measuring, {0} of {1}</source>
        <translation>Messung {0} von {1}</translation>
    </message>
    <message>
        <source>This machine is {0}, so what is measured now would mislead. Let it rest and try again.</source>
        <translation>Dieser Rechner ist nicht in Ruhe ({0}); was jetzt gemessen wird, würde täuschen. Lass ihn ruhen und versuche es noch einmal.</translation>
    </message>
    <message>
        <source>Load a model to measure what its passes cost here.</source>
        <translation>Lade ein Modell, um zu messen, was seine Durchgänge hier kosten.</translation>
    </message>
    <message>
        <source>Not measured yet. It takes some seconds, and Auto then knows from its first round what pays.</source>
        <translation>Noch nicht gemessen. Es dauert einige Sekunden, und „Auto“ weiß dann von der ersten Runde an, was sich lohnt.</translation>
    </message>
    <message>
        <source>Waiting for its turn</source>
        <translation>Wartet, bis es an der Reihe ist</translation>
    </message>
    <message>
        <source>A token takes {0} ms</source>
        <translation>Ein Token dauert {0} ms</translation>
    </message>
    <message>
        <source>{0} drafts {1} in {2} ms</source>
        <translation>{0} entwirft {1} in {2} ms</translation>
    </message>
    <message>
        <source>Plain decoding uses {0} of the memory&apos;s speed.</source>
        <translation>Einfaches Rechnen nutzt {0} der Speicherbandbreite.</translation>
    </message>
    <message numerus="yes">
        <source>checking %n draft(s) takes {0} ms</source>
        <translation>
            <numerusform>einen Entwurf zu prüfen dauert {0} ms</numerusform>
            <numerusform>%n Entwürfe zu prüfen dauert {0} ms</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Chart</name>
    <message>
        <source>{0}, as a table</source>
        <translation>{0}, als Tabelle</translation>
    </message>
    <message>
        <source>Table</source>
        <translation>Tabelle</translation>
    </message>
    <message>
        <source>Show the numbers as a table</source>
        <translation>Die Zahlen als Tabelle zeigen</translation>
    </message>
    <message>
        <source>{0}: show as a table</source>
        <translation>{0}: als Tabelle zeigen</translation>
    </message>
</context>
<context>
    <name>ChatExchange</name>
    <message>
        <source>Export chat</source>
        <translation>Chat exportieren</translation>
    </message>
    <message>
        <source>Import chat</source>
        <translation>Chat importieren</translation>
    </message>
    <message>
        <source>{0} cannot be read ({1}).</source>
        <translation>{0} kann nicht gelesen werden ({1}).</translation>
    </message>
</context>
<context>
    <name>ChatLength</name>
    <message>
        <source>The last message alone has {0} tokens; shorten it.</source>
        <translation>Schon die letzte Nachricht hat {0} Tokens; bitte kürzen.</translation>
    </message>
</context>
<context>
    <name>ChatList</name>
    <message>
        <source>Today</source>
        <translation>Heute</translation>
    </message>
    <message>
        <source>Yesterday</source>
        <translation>Gestern</translation>
    </message>
    <message>
        <source>Last 7 days</source>
        <translation>Letzte 7 Tage</translation>
    </message>
    <message>
        <source>Last 30 days</source>
        <translation>Letzte 30 Tage</translation>
    </message>
    <message>
        <source>Older</source>
        <translation>Älter</translation>
    </message>
</context>
<context>
    <name>ChatScreen</name>
    <message>
        <source>Undo</source>
        <translation>Widerrufen</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>Neuer Chat</translation>
    </message>
    <message>
        <source>The chats could not be read. They were put aside, and a new list was begun.</source>
        <translation>Die Chats waren nicht lesbar. Sie wurden zur Seite gelegt und eine neue Liste begonnen.</translation>
    </message>
    <message>
        <source>The chats were written by a newer version. Update Slipstream; until then nothing is kept.</source>
        <translation>Die Chats stammen von einer neueren Version. Bitte Slipstream aktualisieren; bis dahin wird nichts gesichert.</translation>
    </message>
    <message>
        <source>Chats cannot be saved in their folder. Check its rights and free space.</source>
        <translation>Chats können in ihrem Ordner nicht gesichert werden. Bitte Rechte und freien Platz prüfen.</translation>
    </message>
    <message>
        <source>Deleted “{0}”</source>
        <translation>„{0}“ gelöscht</translation>
    </message>
</context>
<context>
    <name>ChatStart</name>
    <message>
        <source>Other models…</source>
        <translation>Andere Modelle …</translation>
    </message>
    <message>
        <source>Code</source>
        <translation>Code</translation>
    </message>
    <message>
        <source>Write a Python class for a least-recently-used cache, with a short example.</source>
        <translation>Schreibe eine Python-Klasse für einen LRU-Cache, mit einem kurzen Beispiel.</translation>
    </message>
    <message>
        <source>Rewrite</source>
        <translation>Umschreiben</translation>
    </message>
    <message>
        <source>Rewrite this so that it sounds friendly: Your ticket was closed. Read the manual.</source>
        <translation>Schreibe freundlicher: Ihr Ticket wurde geschlossen. Lesen Sie die Anleitung.</translation>
    </message>
    <message>
        <source>Maths</source>
        <translation>Mathematik</translation>
    </message>
    <message>
        <source>A train leaves at 9:40 and arrives at 13:05. How long is the journey? Show the steps.</source>
        <translation>Ein Zug fährt um 9:40 ab und kommt um 13:05 an. Wie lange dauert die Fahrt? Zeige die Schritte.</translation>
    </message>
    <message>
        <source>Prose</source>
        <translation>Prosa</translation>
    </message>
    <message>
        <source>Write the opening paragraph of a story that is set in a lighthouse.</source>
        <translation>Schreibe den ersten Absatz einer Geschichte, die in einem Leuchtturm spielt.</translation>
    </message>
    <message>
        <source>No model is loaded</source>
        <translation>Es ist kein Modell geladen</translation>
    </message>
    <message>
        <source>Suggested for this machine: {0}</source>
        <translation>Vorschlag für diesen Rechner: {0}</translation>
    </message>
    <message>
        <source>Load</source>
        <translation>Laden</translation>
    </message>
    <message>
        <source>Loading {0}…</source>
        <translation>{0} wird geladen …</translation>
    </message>
    <message>
        <source>You can write already.</source>
        <translation>Du kannst schon schreiben.</translation>
    </message>
    <message>
        <source>The model stopped</source>
        <translation>Das Modell hat angehalten</translation>
    </message>
    <message>
        <source>Load again</source>
        <translation>Neu laden</translation>
    </message>
    <message>
        <source>What shall it be?</source>
        <translation>Was darf es sein?</translation>
    </message>
    <message>
        <source>Everything stays on this machine.</source>
        <translation>Alles bleibt auf diesem Rechner.</translation>
    </message>
</context>
<context>
    <name>Chats</name>
    <message>
        <source>{0} (branch)</source>
        <translation>{0} (Zweig)</translation>
    </message>
</context>
<context>
    <name>Chip</name>
    <message>
        <source>Remove {0}</source>
        <translation>{0} entfernen</translation>
    </message>
</context>
<context>
    <name>CodeCard</name>
    <message>
        <source>code</source>
        <translation>Code</translation>
    </message>
    <message>
        <source>Wrap long lines</source>
        <translation>Lange Zeilen umbrechen</translation>
    </message>
    <message>
        <source>Copy code</source>
        <translation>Code kopieren</translation>
    </message>
    <message>
        <source>Save code as a file</source>
        <translation>Code als Datei sichern</translation>
    </message>
    <message>
        <source>Code, {0}</source>
        <translation>Code, {0}</translation>
    </message>
    <message>
        <source>Code</source>
        <translation>Code</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>Kopiert</translation>
    </message>
    <message>
        <source>Save code</source>
        <translation>Code sichern</translation>
    </message>
    <message>
        <source>{0} could not be written: {1}</source>
        <translation>{0} konnte nicht geschrieben werden: {1}</translation>
    </message>
    <message>
        <source>Saved to {0}</source>
        <translation>Gesichert in {0}</translation>
    </message>
</context>
<context>
    <name>Composer</name>
    <message>
        <source>Message</source>
        <translation>Nachricht</translation>
    </message>
    <message>
        <source>Message…</source>
        <translation>Nachricht …</translation>
    </message>
    <message>
        <source>Attach text files or PDFs</source>
        <translation>Textdateien oder PDFs anhängen</translation>
    </message>
    <message>
        <source>Parameters of this chat</source>
        <translation>Parameter dieses Chats</translation>
    </message>
    <message>
        <source>Tokens against the context</source>
        <translation>Tokens im Verhältnis zum Kontext</translation>
    </message>
    <message>
        <source>Drop oldest turns…</source>
        <translation>Älteste weglassen …</translation>
    </message>
    <message>
        <source>Cancel edit</source>
        <translation>Nicht bearbeiten</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>Senden</translation>
    </message>
    <message>
        <source>{0}: this model reads text only.</source>
        <translation>{0}: Dieses Modell liest nur Text.</translation>
    </message>
    <message>
        <source>{0} cannot be read; check the file.</source>
        <translation>{0} kann nicht gelesen werden; bitte die Datei prüfen.</translation>
    </message>
    <message>
        <source>{0} has no text in it, only pictures of pages; attach its text.</source>
        <translation>{0} enthält keinen Text, nur Bilder von Seiten; bitte den Text anhängen.</translation>
    </message>
    <message>
        <source>{0} is no text file; attach text or a PDF.</source>
        <translation>{0} ist keine Textdatei; bitte Text oder ein PDF anhängen.</translation>
    </message>
    <message>
        <source>{0} / {1} tokens</source>
        <translation>{0} / {1} Tokens</translation>
    </message>
    <message>
        <source>{0}, too long</source>
        <translation>{0}, zu lang</translation>
    </message>
    <message>
        <source>{0}, nearly full</source>
        <translation>{0}, fast voll</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Anhalten</translation>
    </message>
    <message>
        <source>Stop the answer</source>
        <translation>Antwort anhalten</translation>
    </message>
    <message>
        <source>Too long</source>
        <translation>Zu lang</translation>
    </message>
    <message>
        <source>Return sends</source>
        <translation>Return sendet</translation>
    </message>
    <message>
        <source>⌘ Return sends</source>
        <translation>⌘ Return sendet</translation>
    </message>
    <message>
        <source>Pasted text {0}</source>
        <translation>Eingesetzter Text {0}</translation>
    </message>
    <message>
        <source>This model reads text only.</source>
        <translation>Dieses Modell liest nur Text.</translation>
    </message>
    <message>
        <source>Attach files</source>
        <translation>Dateien anhängen</translation>
    </message>
    <message>
        <source>{0} has more text than 4 MB; attach a part of it.</source>
        <translation>{0} hat mehr Text als 4 MB; hänge einen Teil davon an.</translation>
    </message>
    <message>
        <source>{0} is locked with a password; save a copy without one and attach that.</source>
        <translation>{0} ist mit einem Passwort gesperrt; sichere eine Kopie ohne Passwort und hänge sie an.</translation>
    </message>
    <message>
        <source>{0} is larger than 64 MB; attach a part of it.</source>
        <translation>{0} ist größer als 64 MB; bitte einen Teil davon anhängen.</translation>
    </message>
</context>
<context>
    <name>Conversation</name>
    <message>
        <source>Send all again</source>
        <translation>Wieder alles senden</translation>
    </message>
    <message numerus="yes">
        <source>The first %n message(s) are no longer sent to the model.</source>
        <translation>
            <numerusform>Die erste Nachricht wird dem Modell nicht mehr gesendet.</numerusform>
            <numerusform>Die ersten %n Nachrichten werden dem Modell nicht mehr gesendet.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Reply finished, %Ln token(s)</source>
        <translation>
            <numerusform>Antwort fertig, %Ln Token</numerusform>
            <numerusform>Antwort fertig, %Ln Tokens</numerusform>
        </translation>
    </message>
    <message>
        <source>Reply stopped</source>
        <translation>Antwort angehalten</translation>
    </message>
    <message>
        <source>Reply failed</source>
        <translation>Antwort fehlgeschlagen</translation>
    </message>
    <message>
        <source>Verified: identical</source>
        <translation>Geprüft: gleich</translation>
    </message>
    <message>
        <source>Verified: a numeric tie</source>
        <translation>Geprüft: Gleichstand</translation>
    </message>
    <message>
        <source>Verified: different</source>
        <translation>Geprüft: anders</translation>
    </message>
</context>
<context>
    <name>CostChart</name>
    <message>
        <source>Milliseconds</source>
        <translation>Millisekunden</translation>
    </message>
    <message>
        <source>Who drafts</source>
        <translation>Wer entwirft</translation>
    </message>
    <message>
        <source>Drafts verified</source>
        <translation>Geprüfte Entwürfe</translation>
    </message>
    <message>
        <source>Cost: milliseconds of a round, by drafts verified</source>
        <translation>Kosten: Millisekunden einer Runde, nach geprüften Entwürfen</translation>
    </message>
    <message>
        <source>Nothing was measured yet: Auto learns it in its first rounds.</source>
        <translation>Noch nichts gemessen: „Auto“ lernt es in den ersten Runden.</translation>
    </message>
    <message>
        <source>plain</source>
        <translation>einfach</translation>
    </message>
    <message>
        <source>n-gram</source>
        <translation>N-Gramm</translation>
    </message>
    <message numerus="yes">
        <source>The cost of a round at %n length(s)</source>
        <translation>
            <numerusform>Was eine Runde bei einer Länge kostet</numerusform>
            <numerusform>Was eine Runde bei %n Längen kostet</numerusform>
        </translation>
    </message>
    <message>
        <source>How far it pays to draft</source>
        <translation>Wie weit sich das Entwerfen lohnt</translation>
    </message>
    <message>
        <source>Knee at {0}</source>
        <translation>Knick bei {0}</translation>
    </message>
    <message>
        <source>No knee up to {0}</source>
        <translation>Kein Knick bis {0}</translation>
    </message>
    <message>
        <source>Knee unknown before calibration</source>
        <translation>Knick vor der Kalibrierung unbekannt</translation>
    </message>
    <message>
        <source>cap now {0}</source>
        <translation>Grenze jetzt {0}</translation>
    </message>
    <message>
        <source>cap now {0} for {1}</source>
        <translation>Grenze jetzt {0} für {1}</translation>
    </message>
    <message>
        <source>{0} is parked: plain decoding is faster</source>
        <translation>{0} pausiert: einfaches Rechnen ist schneller</translation>
    </message>
</context>
<context>
    <name>DownloadCard</name>
    <message>
        <source>Download of {0}</source>
        <translation>Download von {0}</translation>
    </message>
    <message>
        <source>Open page</source>
        <translation>Seite öffnen</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>Pause</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>Fortsetzen</translation>
    </message>
    <message>
        <source>Pause {0}</source>
        <translation>{0} pausieren</translation>
    </message>
    <message>
        <source>Resume {0}</source>
        <translation>{0} fortsetzen</translation>
    </message>
    <message>
        <source>{0} of {1}</source>
        <translation>{0} von {1}</translation>
    </message>
    <message>
        <source>Waiting behind another download</source>
        <translation>Wartet auf einen anderen Download</translation>
    </message>
    <message>
        <source>Asking the hub what is there</source>
        <translation>Fragt beim Hub nach, was es gibt</translation>
    </message>
    <message>
        <source>{0} a second</source>
        <translation>{0} je Sekunde</translation>
    </message>
    <message>
        <source>about {0} left</source>
        <translation>noch etwa {0}</translation>
    </message>
    <message>
        <source>Paused</source>
        <translation>Pausiert</translation>
    </message>
    <message>
        <source>Downloaded and checked</source>
        <translation>Heruntergeladen und geprüft</translation>
    </message>
    <message>
        <source>Paste your Hugging Face token</source>
        <translation>Hugging-Face-Token einsetzen</translation>
    </message>
    <message>
        <source>Hugging Face token</source>
        <translation>Hugging-Face-Token</translation>
    </message>
    <message>
        <source>Use token</source>
        <translation>Token verwenden</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>Löschen</translation>
    </message>
    <message>
        <source>Delete what is here of {0}</source>
        <translation>Löschen, was von {0} hier ist</translation>
    </message>
    <message>
        <source>Incomplete, {0}. What is here is not fetched again.</source>
        <translation>Unvollständig, {0}. Was hier ist, wird nicht noch einmal heruntergeladen.</translation>
    </message>
    <message>
        <source>Really delete</source>
        <translation>Wirklich löschen</translation>
    </message>
</context>
<context>
    <name>DownloadList</name>
    <message>
        <source>Nothing is being downloaded. Choose a pair under Suggested.</source>
        <translation>Gerade wird nichts heruntergeladen. Wähle ein Paar unter „Vorschläge“.</translation>
    </message>
    <message>
        <source>Downloads</source>
        <translation>Downloads</translation>
    </message>
</context>
<context>
    <name>DrafterChoice</name>
    <message>
        <source>Drafter of the next answers</source>
        <translation>Entwurfsmodell der nächsten Antworten</translation>
    </message>
    <message>
        <source>Drafter to load it with</source>
        <translation>Entwurfsmodell, mit dem es geladen wird</translation>
    </message>
    <message>
        <source>Auto: whatever is fastest, measured as it goes</source>
        <translation>Auto: was gerade am schnellsten ist, laufend gemessen</translation>
    </message>
    <message>
        <source>None: plain decoding</source>
        <translation>Keines: einfach rechnen</translation>
    </message>
    <message>
        <source>None</source>
        <translation>Keines</translation>
    </message>
    <message>
        <source>not measured here</source>
        <translation>hier nicht gemessen</translation>
    </message>
    <message numerus="yes">
        <source>{0} of %Ln draft(s) accepted here, {1} tokens per round</source>
        <translation>
            <numerusform>{0} von %Ln Entwurf hier angenommen, {1} Tokens je Runde</numerusform>
            <numerusform>{0} von %Ln Entwürfen hier angenommen, {1} Tokens je Runde</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>DrafterMenu</name>
    <message>
        <source>Drafter</source>
        <translation>Entwurfsmodell</translation>
    </message>
    <message>
        <source>Load {0}</source>
        <translation>{0} laden</translation>
    </message>
    <message>
        <source>More drafters…</source>
        <translation>Weitere Entwurfsmodelle …</translation>
    </message>
</context>
<context>
    <name>DropTurns</name>
    <message numerus="yes">
        <source>Send the oldest %n message(s) no longer?</source>
        <translation>
            <numerusform>Die älteste Nachricht nicht mehr senden?</numerusform>
            <numerusform>Die ältesten %n Nachrichten nicht mehr senden?</numerusform>
        </translation>
    </message>
    <message>
        <source>Drop</source>
        <translation>Weglassen</translation>
    </message>
    <message numerus="yes">
        <source>They stay in the chat. %Ln token(s) are left to send.</source>
        <translation>
            <numerusform>Sie bleiben im Chat. Ein Token bleibt zu senden.</numerusform>
            <numerusform>Sie bleiben im Chat. %Ln Tokens bleiben zu senden.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>FileList</name>
    <message>
        <source>Files of this pair</source>
        <translation>Dateien dieses Paars</translation>
    </message>
    <message numerus="yes">
        <source>%n file(s), {0}</source>
        <translation>
            <numerusform>%n Datei, {0}</numerusform>
            <numerusform>%n Dateien, {0}</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>FindBar</name>
    <message>
        <source>Find in this chat</source>
        <translation>In diesem Chat suchen</translation>
    </message>
    <message>
        <source>Done</source>
        <translation>Fertig</translation>
    </message>
    <message>
        <source>Nothing found</source>
        <translation>Nichts gefunden</translation>
    </message>
    <message>
        <source>{0} of {1}</source>
        <translation>{0} von {1}</translation>
    </message>
</context>
<context>
    <name>Footer</name>
    <message>
        <source>Engine</source>
        <translation>Engine</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>Aus</translation>
    </message>
    <message>
        <source>Loading</source>
        <translation>Lädt</translation>
    </message>
    <message>
        <source>Ready</source>
        <translation>Bereit</translation>
    </message>
    <message>
        <source>Generating</source>
        <translation>Schreibt</translation>
    </message>
    <message>
        <source>{0} tok/s</source>
        <translation>{0} Tok/s</translation>
    </message>
    <message>
        <source>{0} accepted</source>
        <translation>{0} angenommen</translation>
    </message>
    <message>
        <source>Reading</source>
        <translation>Liest</translation>
    </message>
    <message>
        <source>Measuring</source>
        <translation>Misst</translation>
    </message>
    <message>
        <source>Crashed</source>
        <translation>Abgestürzt</translation>
    </message>
    <message>
        <source>Clients paused</source>
        <translation>Clients pausiert</translation>
    </message>
</context>
<context>
    <name>KeepChoice</name>
    <message>
        <source>How long it stays loaded while nothing is asked</source>
        <translation>Wie lange es geladen bleibt, wenn nichts gefragt wird</translation>
    </message>
    <message>
        <source>When it has been unloaded, the next request to the server loads it again.</source>
        <translation>Ist es entladen, lädt die nächste Anfrage an den Server es wieder.</translation>
    </message>
    <message>
        <source>Stays loaded</source>
        <translation>Bleibt geladen</translation>
    </message>
    <message numerus="yes">
        <source>%n minute(s) after the last request</source>
        <translation>
            <numerusform>eine Minute nach der letzten Anfrage</numerusform>
            <numerusform>%n Minuten nach der letzten Anfrage</numerusform>
        </translation>
    </message>
    <message>
        <source>always</source>
        <translation>immer</translation>
    </message>
    <message>
        <source>As in Settings: {0}</source>
        <translation>Wie in den Einstellungen: {0}</translation>
    </message>
    <message>
        <source>Always: pinned</source>
        <translation>Immer: angeheftet</translation>
    </message>
</context>
<context>
    <name>KeptPrompts</name>
    <message>
        <source>Clear</source>
        <translation>Leeren</translation>
    </message>
    <message>
        <source>Clear kept prompts</source>
        <translation>Aufbewahrte Prompts löschen</translation>
    </message>
    <message>
        <source>Nothing is kept while no model is loaded.</source>
        <translation>Solange kein Modell geladen ist, wird nichts aufbewahrt.</translation>
    </message>
    <message>
        <source>Kept now: {0} in memory, {1} on disk.</source>
        <translation>Zurzeit aufbewahrt: {0} im Speicher, {1} auf der Platte.</translation>
    </message>
</context>
<context>
    <name>Limits</name>
    <message>
        <source>GPU working set</source>
        <translation>für die GPU vorgesehen</translation>
    </message>
    <message>
        <source>GPU memory</source>
        <translation>Speicher der GPU</translation>
    </message>
    <message>
        <source>free memory</source>
        <translation>freier Speicher</translation>
    </message>
    <message>
        <source>memory of this container</source>
        <translation>Speicher dieses Containers</translation>
    </message>
    <message>
        <source>memory of this machine</source>
        <translation>Speicher dieses Rechners</translation>
    </message>
</context>
<context>
    <name>LiveFigures</name>
    <message>
        <source>tok/s</source>
        <translation>Tok/s</translation>
    </message>
    <message>
        <source>tokens per round</source>
        <translation>Tokens je Runde</translation>
    </message>
    <message>
        <source>of drafts accepted</source>
        <translation>der Entwürfe angenommen</translation>
    </message>
    <message>
        <source>to first token</source>
        <translation>bis zum ersten Token</translation>
    </message>
    <message>
        <source>of prompts cached</source>
        <translation>der Prompts aus dem Cache</translation>
    </message>
    <message>
        <source>to first token, cached</source>
        <translation>bis zum ersten Token, aus dem Cache</translation>
    </message>
</context>
<context>
    <name>LoadBar</name>
    <message>
        <source>Loading</source>
        <translation>Wird geladen</translation>
    </message>
</context>
<context>
    <name>LogPage</name>
    <message>
        <source>Level</source>
        <translation>Stufe</translation>
    </message>
    <message>
        <source>All</source>
        <translation>Alle</translation>
    </message>
    <message>
        <source>Warnings and errors</source>
        <translation>Warnungen und Fehler</translation>
    </message>
    <message>
        <source>Errors</source>
        <translation>Fehler</translation>
    </message>
    <message>
        <source>Search the log</source>
        <translation>Protokoll durchsuchen</translation>
    </message>
    <message>
        <source>Follow</source>
        <translation>Mitlaufen</translation>
    </message>
    <message>
        <source>Copy last error</source>
        <translation>Letzten Fehler kopieren</translation>
    </message>
    <message>
        <source>Log</source>
        <translation>Protokoll</translation>
    </message>
</context>
<context>
    <name>LossChart</name>
    <message>
        <source>Loss</source>
        <translation>Verlust</translation>
    </message>
    <message>
        <source>Step</source>
        <translation>Schritt</translation>
    </message>
    <message>
        <source>step</source>
        <translation>Schritt</translation>
    </message>
    <message>
        <source>It begins once the conversations are written.</source>
        <translation>Es beginnt, sobald die Gespräche geschrieben sind.</translation>
    </message>
    <message>
        <source>Loss now: {0}</source>
        <translation>Verlust jetzt: {0}</translation>
    </message>
</context>
<context>
    <name>MainWindow</name>
    <message>
        <source>loaded</source>
        <translation>geladen</translation>
    </message>
    <message>
        <source>{0}× here</source>
        <translation>hier {0}×</translation>
    </message>
    <message>
        <source>Stop Server</source>
        <translation>Server anhalten</translation>
    </message>
    <message>
        <source>Start Server</source>
        <translation>Server starten</translation>
    </message>
    <message>
        <source>fits</source>
        <translation>passt</translation>
    </message>
    <message>
        <source>tight</source>
        <translation>knapp</translation>
    </message>
    <message>
        <source>too large</source>
        <translation>zu groß</translation>
    </message>
    <message>
        <source>{0} is loaded</source>
        <translation>{0} ist geladen</translation>
    </message>
</context>
<context>
    <name>MakeRoom</name>
    <message>
        <source>Make room</source>
        <translation>Platz schaffen</translation>
    </message>
    <message>
        <source>The oldest stand first, those loaded here lately last. Other programs may use the shared cache too. What goes from there goes to the Bin where there is one, else it is deleted; it can be downloaded again.</source>
        <translation>Die ältesten stehen vorn, die zuletzt hier geladenen hinten. Auch andere Programme können den gemeinsamen Modell-Cache nutzen. Was von dort geht, kommt in den Papierkorb, wo es einen gibt, sonst wird es gelöscht; es lässt sich wieder herunterladen.</translation>
    </message>
    <message>
        <source>Models that could go, with their files</source>
        <translation>Modelle, die gehen könnten, mit ihren Dateien</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>Größe</translation>
    </message>
    <message>
        <source>Here since</source>
        <translation>Hier seit</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
    <message>
        <source>Keep all</source>
        <translation>Alle behalten</translation>
    </message>
    <message numerus="yes">
        <source>%n file(s), {0}, would go.</source>
        <translation>
            <numerusform>%n Datei, {0}, würde verschwinden.</numerusform>
            <numerusform>%n Dateien, {0}, würden verschwinden.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>MemoryPanel</name>
    <message>
        <source>Memory</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>weights</source>
        <translation>Gewichte</translation>
    </message>
    <message>
        <source>limit</source>
        <translation>Grenze</translation>
    </message>
    <message>
        <source>nominal</source>
        <translation>normal</translation>
    </message>
    <message>
        <source>raised</source>
        <translation>erhöht</translation>
    </message>
    <message>
        <source>high</source>
        <translation>hoch</translation>
    </message>
    <message>
        <source>Heat: {0}</source>
        <translation>Wärme: {0}</translation>
    </message>
    <message>
        <source>Memory pressure: {0}</source>
        <translation>Speicherdruck: {0}</translation>
    </message>
    <message>
        <source>Swap: {0}</source>
        <translation>Auslagerung: {0}</translation>
    </message>
    <message>
        <source>On battery</source>
        <translation>Im Batteriebetrieb</translation>
    </message>
    <message>
        <source>drafter</source>
        <translation>Entwurfsmodell</translation>
    </message>
    <message>
        <source>KV of running answers</source>
        <translation>KV laufender Antworten</translation>
    </message>
    <message>
        <source>cache of prompts</source>
        <translation>Cache der Prompts</translation>
    </message>
    <message>
        <source>working memory</source>
        <translation>Speicher der Durchgänge</translation>
    </message>
    <message>
        <source>free</source>
        <translation>frei</translation>
    </message>
    <message>
        <source>this program</source>
        <translation>dieses Programm</translation>
    </message>
</context>
<context>
    <name>MessageAsks</name>
    <message>
        <source>This answer&apos;s tokens were not kept, so it cannot be checked.</source>
        <translation>Die Tokens dieser Antwort wurden nicht aufgehoben, daher kann sie nicht geprüft werden.</translation>
    </message>
</context>
<context>
    <name>MessageHead</name>
    <message>
        <source>You</source>
        <translation>Du</translation>
    </message>
    <message>
        <source>Assistant</source>
        <translation>Assistent</translation>
    </message>
    <message>
        <source>Edit and ask again</source>
        <translation>Bearbeiten und neu fragen</translation>
    </message>
    <message>
        <source>Copy this message</source>
        <translation>Diese Nachricht kopieren</translation>
    </message>
</context>
<context>
    <name>MessageWidget</name>
    <message>
        <source>Your message</source>
        <translation>Deine Nachricht</translation>
    </message>
    <message>
        <source>Answer</source>
        <translation>Antwort</translation>
    </message>
    <message>
        <source>not sent any more</source>
        <translation>wird nicht mehr gesendet</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Copy link</source>
        <translation>Link kopieren</translation>
    </message>
    <message>
        <source>Copy message</source>
        <translation>Nachricht kopieren</translation>
    </message>
    <message>
        <source>Copy as Markdown</source>
        <translation>Als Markdown kopieren</translation>
    </message>
    <message>
        <source>Text</source>
        <translation>Text</translation>
    </message>
</context>
<context>
    <name>ModelDownloads</name>
    <message>
        <source>Downloads need a connection.</source>
        <translation>Zum Herunterladen ist eine Verbindung nötig.</translation>
    </message>
    <message>
        <source>{0} The largest pairs here: {1}.</source>
        <translation>{0} Die größten Paare hier: {1}.</translation>
    </message>
</context>
<context>
    <name>ModelPairs</name>
    <message>
        <source>Pairs</source>
        <translation>Paare</translation>
    </message>
    <message>
        <source>Looking for models on this machine…</source>
        <translation>Modelle auf diesem Rechner werden gesucht …</translation>
    </message>
    <message>
        <source>Context that must fit</source>
        <translation>Kontext, der passen muss</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>Kontext</translation>
    </message>
    <message>
        <source>No pair matches.</source>
        <translation>Kein Paar passt.</translation>
    </message>
    <message>
        <source>Nothing was found on this machine. Look under Suggested, or add a folder.</source>
        <translation>Auf diesem Rechner wurde nichts gefunden. Sieh unter „Vorschläge“ nach, oder füge einen Ordner hinzu.</translation>
    </message>
    <message>
        <source>{0} tokens</source>
        <translation>{0} Tokens</translation>
    </message>
    <message>
        <source>See what is suggested</source>
        <translation>Vorschläge ansehen</translation>
    </message>
    <message>
        <source>Add a folder…</source>
        <translation>Ordner hinzufügen …</translation>
    </message>
</context>
<context>
    <name>ModelSpace</name>
    <message>
        <source>Make room…</source>
        <translation>Platz schaffen …</translation>
    </message>
    <message>
        <source>Models take {0} now.</source>
        <translation>Modelle belegen jetzt {0}.</translation>
    </message>
    <message>
        <source>Models take {0} now, {1} of it converted from GGUF files.</source>
        <translation>Modelle belegen jetzt {0}, davon {1} aus GGUF-Dateien umgewandelt.</translation>
    </message>
    <message>
        <source>That is {0} over the limit.</source>
        <translation>Das sind {0} über der Grenze.</translation>
    </message>
    <message>
        <source>There is nothing that could go: no model is in the cache, or only the loaded one.</source>
        <translation>Es gibt nichts, was gehen könnte: Kein Modell liegt im gemeinsamen Modell-Cache, oder nur das geladene.</translation>
    </message>
</context>
<context>
    <name>ModelsScreen</name>
    <message>
        <source>Shelf</source>
        <translation>Regal</translation>
    </message>
    <message>
        <source>On this machine</source>
        <translation>Auf diesem Rechner</translation>
    </message>
    <message>
        <source>Suggested</source>
        <translation>Vorschläge</translation>
    </message>
    <message>
        <source>Downloads</source>
        <translation>Downloads</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>Suchen</translation>
    </message>
    <message>
        <source>Search pairs</source>
        <translation>Paare suchen</translation>
    </message>
    <message>
        <source>Fits only</source>
        <translation>Nur was passt</translation>
    </message>
    <message>
        <source>Add a folder…</source>
        <translation>Ordner hinzufügen …</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>Downloads ({0})</source>
        <translation>Downloads ({0})</translation>
    </message>
    <message>
        <source>A folder with models</source>
        <translation>Ein Ordner mit Modellen</translation>
    </message>
    <message>
        <source>Training</source>
        <translation>Training</translation>
    </message>
</context>
<context>
    <name>Notice</name>
    <message>
        <source>Progress</source>
        <translation>Fortschritt</translation>
    </message>
</context>
<context>
    <name>OnboardingScreen</name>
    <message>
        <source>Welcome to Slipstream</source>
        <translation>Willkommen bei Slipstream</translation>
    </message>
    <message>
        <source>A small drafter guesses the next words, the model checks them all at once. The answer stays the same, only sooner.</source>
        <translation>Ein kleines Entwurfsmodell rät die nächsten Wörter, das Modell prüft alle auf einmal. Die Antwort bleibt dieselbe, nur kommt sie früher.</translation>
    </message>
    <message>
        <source>Start chatting</source>
        <translation>Chat beginnen</translation>
    </message>
    <message>
        <source>See the race</source>
        <translation>Das Rennen ansehen</translation>
    </message>
    <message>
        <source>Connect an agent</source>
        <translation>Einen Agenten verbinden</translation>
    </message>
    <message>
        <source>Welcome</source>
        <translation>Willkommen</translation>
    </message>
    <message>
        <source>This Mac</source>
        <translation>Dieser Mac</translation>
    </message>
    <message>
        <source>This computer</source>
        <translation>Dieser Rechner</translation>
    </message>
    <message>
        <source>{0} GB of memory, {1} GB for models</source>
        <translation>{0} GB Arbeitsspeicher, {1} GB für Modelle</translation>
    </message>
    <message>
        <source>{0} GB free on disk</source>
        <translation>{0} GB frei auf der Platte</translation>
    </message>
    <message>
        <source>Pick a pair</source>
        <translation>Ein Paar wählen</translation>
    </message>
    <message>
        <source>Small, built in, works without a network</source>
        <translation>Klein, mitgeliefert, braucht kein Netz</translation>
    </message>
    <message>
        <source>More models…</source>
        <translation>Mehr Modelle …</translation>
    </message>
    <message>
        <source>Ready</source>
        <translation>Bereit</translation>
    </message>
    <message>
        <source>Looking for more…</source>
        <translation>Weitere werden gesucht …</translation>
    </message>
    <message>
        <source>Found on this machine, no download. {0}</source>
        <translation>Auf diesem Rechner gefunden, kein Download. {0}</translation>
    </message>
    <message>
        <source>Fast</source>
        <translation>Schnell</translation>
    </message>
    <message>
        <source>Balanced</source>
        <translation>Ausgewogen</translation>
    </message>
    <message>
        <source>Large</source>
        <translation>Groß</translation>
    </message>
    <message>
        <source>{0}: about {1} to download</source>
        <translation>{0}: etwa {1} herunterzuladen</translation>
    </message>
    <message>
        <source>Download…</source>
        <translation>Herunterladen …</translation>
    </message>
    <message>
        <source>Load</source>
        <translation>Laden</translation>
    </message>
    <message>
        <source>{0}: {1} to download</source>
        <translation>{0}: {1} herunterzuladen</translation>
    </message>
    <message>
        <source>{0}: at least {1} to download</source>
        <translation>{0}: mindestens {1} herunterzuladen</translation>
    </message>
    <message>
        <source>Use models I already have…</source>
        <translation>Eigene Modelle verwenden …</translation>
    </message>
    <message>
        <source>A folder with models</source>
        <translation>Ein Ordner mit Modellen</translation>
    </message>
    <message>
        <source>how much context fits is known once it is here</source>
        <translation>wie viel Kontext passt, ist bekannt, sobald es hier ist</translation>
    </message>
    <message>
        <source>fits at {0}</source>
        <translation>passt bei {0}</translation>
    </message>
    <message>
        <source>tight at {0}</source>
        <translation>knapp bei {0}</translation>
    </message>
    <message>
        <source>fits up to {0}</source>
        <translation>passt bis {0}</translation>
    </message>
    <message>
        <source>too large</source>
        <translation>zu groß</translation>
    </message>
    <message>
        <source>{0} (drafter not counted)</source>
        <translation>{0} (Entwurfsmodell nicht mitgerechnet)</translation>
    </message>
</context>
<context>
    <name>PairDetails</name>
    <message>
        <source>Memory of this pair</source>
        <translation>Speicher dieses Paars</translation>
    </message>
    <message>
        <source>Load</source>
        <translation>Laden</translation>
    </message>
    <message>
        <source>Get</source>
        <translation>Herunterladen</translation>
    </message>
    <message>
        <source>Check whether it fits</source>
        <translation>Prüfen, ob es passt</translation>
    </message>
    <message>
        <source>Race…</source>
        <translation>Rennen …</translation>
    </message>
    <message>
        <source>Race this pair</source>
        <translation>Rennen mit diesem Paar</translation>
    </message>
    <message>
        <source>Calibrate</source>
        <translation>Kalibrieren</translation>
    </message>
    <message>
        <source>Measure this pair on this machine</source>
        <translation>Dieses Paar auf diesem Rechner messen</translation>
    </message>
    <message>
        <source>Make a drafter…</source>
        <translation>Entwurfsmodell machen …</translation>
    </message>
    <message>
        <source>Reveal</source>
        <translation>Im Ordner zeigen</translation>
    </message>
    <message>
        <source>Show the folder</source>
        <translation>Ordner zeigen</translation>
    </message>
    <message>
        <source>Delete…</source>
        <translation>Löschen …</translation>
    </message>
    <message>
        <source>Details</source>
        <translation>Einzelheiten</translation>
    </message>
    <message>
        <source>Unload</source>
        <translation>Entladen</translation>
    </message>
    <message>
        <source>Get {0}</source>
        <translation>{0} herunterladen</translation>
    </message>
    <message>
        <source>Working out how much memory it takes…</source>
        <translation>Der nötige Speicher wird berechnet …</translation>
    </message>
    <message>
        <source>How much memory it takes is not known before it is loaded.</source>
        <translation>Wie viel Speicher es braucht, zeigt sich erst beim Laden.</translation>
    </message>
    <message>
        <source>model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>drafter</source>
        <translation>Entwurfsmodell</translation>
    </message>
    <message>
        <source>context</source>
        <translation>Kontext</translation>
    </message>
    <message>
        <source>working memory</source>
        <translation>Speicher der Durchgänge</translation>
    </message>
    <message>
        <source>Fits at {0} tokens, with {1} to spare.</source>
        <translation>Passt mit {0} Tokens, {1} bleiben frei.</translation>
    </message>
    <message>
        <source>Tight at {0} tokens: only {1} to spare.</source>
        <translation>Knapp mit {0} Tokens: nur {1} bleiben frei.</translation>
    </message>
    <message>
        <source>Too large at {0} tokens: it needs {1} more than this machine gives.</source>
        <translation>Zu groß mit {0} Tokens: Es braucht {1} mehr, als dieser Rechner hergibt.</translation>
    </message>
    <message>
        <source>It fits up to {0} tokens.</source>
        <translation>Es passt bis {0} Tokens.</translation>
    </message>
    <message>
        <source>Get about {0}</source>
        <translation>Etwa {0} herunterladen</translation>
    </message>
    <message>
        <source>Get at least {0}</source>
        <translation>Mindestens {0} herunterladen</translation>
    </message>
    <message>
        <source>How much memory it takes is known once the hub was asked for its layout.</source>
        <translation>Wie viel Speicher es braucht, ist bekannt, sobald der Hub nach seinem Aufbau gefragt wurde.</translation>
    </message>
    <message>
        <source>Measured here: {0}</source>
        <translation>Hier gemessen: {0}</translation>
    </message>
    <message>
        <source>not stated in its files</source>
        <translation>nicht in seinen Dateien genannt</translation>
    </message>
    <message>
        <source>Licence: {0}</source>
        <translation>Lizenz: {0}</translation>
    </message>
    <message>
        <source>Folder: {0}</source>
        <translation>Ordner: {0}</translation>
    </message>
    <message>
        <source>Worked out from what was published of it; checking asks the hub for its exact size.</source>
        <translation>Aus Veröffentlichtem berechnet; „Prüfen“ fragt den Hub nach der genauen Größe.</translation>
    </message>
    <message>
        <source>Its drafter is not counted: nobody published how large that is.</source>
        <translation>Sein Entwurfsmodell ist nicht mitgerechnet: Dessen Größe hat niemand veröffentlicht.</translation>
    </message>
    <message>
        <source>part of Slipstream</source>
        <translation>Teil von Slipstream</translation>
    </message>
    <message>
        <source>Hugging Face&apos;s cache, which other programs share</source>
        <translation>der Cache von Hugging Face, den andere Programme mitbenutzen</translation>
    </message>
    <message>
        <source>shared with LM Studio</source>
        <translation>mit LM Studio geteilt</translation>
    </message>
    <message>
        <source>a folder of your own</source>
        <translation>ein eigener Ordner</translation>
    </message>
    <message>
        <source>{0} ({1})</source>
        <translation>{0} ({1})</translation>
    </message>
</context>
<context>
    <name>PairTable</name>
    <message>
        <source>Pair</source>
        <translation>Paar</translation>
    </message>
    <message>
        <source>Bits</source>
        <translation>Bit</translation>
    </message>
    <message>
        <source>Disk</source>
        <translation>Platte</translation>
    </message>
    <message>
        <source>Memory at this context</source>
        <translation>Speicher bei diesem Kontext</translation>
    </message>
    <message>
        <source>Speed here</source>
        <translation>Tempo hier</translation>
    </message>
    <message>
        <source>State</source>
        <translation>Zustand</translation>
    </message>
    <message>
        <source>not measured</source>
        <translation>nicht gemessen</translation>
    </message>
    <message>
        <source>unknown</source>
        <translation>unbekannt</translation>
    </message>
    <message>
        <source>fits</source>
        <translation>passt</translation>
    </message>
    <message>
        <source>tight</source>
        <translation>knapp</translation>
    </message>
    <message>
        <source>too large</source>
        <translation>zu groß</translation>
    </message>
    <message>
        <source>Loaded</source>
        <translation>Geladen</translation>
    </message>
    <message>
        <source>Cannot be used</source>
        <translation>Nicht verwendbar</translation>
    </message>
    <message>
        <source>Ready</source>
        <translation>Bereit</translation>
    </message>
    <message>
        <source>Drafter missing</source>
        <translation>Entwurfsmodell fehlt</translation>
    </message>
    <message>
        <source>Not downloaded</source>
        <translation>Nicht heruntergeladen</translation>
    </message>
    <message>
        <source>Stays loaded</source>
        <translation>Bleibt geladen</translation>
    </message>
    <message>
        <source>pinned</source>
        <translation>angeheftet</translation>
    </message>
    <message numerus="yes">
        <source>%n min</source>
        <translation>
            <numerusform>%n min</numerusform>
            <numerusform>%n min</numerusform>
        </translation>
    </message>
    <message>
        <source>always</source>
        <translation>immer</translation>
    </message>
    <message>
        <source>Loaded without drafter</source>
        <translation>Ohne Entwurfsmodell geladen</translation>
    </message>
    <message>
        <source>Drafter missing, {0}</source>
        <translation>Entwurfsmodell fehlt, {0}</translation>
    </message>
    <message>
        <source>Needs {0}× the memory here</source>
        <translation>Braucht {0}× den Speicher hier</translation>
    </message>
</context>
<context>
    <name>Palette</name>
    <message>
        <source>Command palette</source>
        <translation>Befehlspalette</translation>
    </message>
    <message>
        <source>Do, open or find…</source>
        <translation>Tun, öffnen oder finden …</translation>
    </message>
    <message>
        <source>What to do</source>
        <translation>Was zu tun ist</translation>
    </message>
    <message>
        <source>Found</source>
        <translation>Gefunden</translation>
    </message>
    <message>
        <source>Nothing has that name.</source>
        <translation>Nichts heißt so.</translation>
    </message>
</context>
<context>
    <name>ParametersDrawer</name>
    <message>
        <source>Parameters</source>
        <translation>Parameter</translation>
    </message>
    <message>
        <source>Close parameters</source>
        <translation>Parameter schließen</translation>
    </message>
    <message>
        <source>Exact</source>
        <translation>Genau</translation>
    </message>
    <message>
        <source>Balanced</source>
        <translation>Ausgewogen</translation>
    </message>
    <message>
        <source>Lively</source>
        <translation>Lebhaft</translation>
    </message>
    <message>
        <source>Preset {0}</source>
        <translation>Vorgabe {0}</translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation>Systemprompt</translation>
    </message>
    <message>
        <source>Said to the model before everything</source>
        <translation>Wird dem Modell vor allem anderen gesagt</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>Temperatur</translation>
    </message>
    <message>
        <source>0: always the likeliest token</source>
        <translation>0: immer das wahrscheinlichste Token</translation>
    </message>
    <message>
        <source>Top-p</source>
        <translation>Top-p</translation>
    </message>
    <message>
        <source>Only the likeliest tokens up to this share</source>
        <translation>Nur die wahrscheinlichsten Tokens bis zu diesem Anteil</translation>
    </message>
    <message>
        <source>Top-k</source>
        <translation>Top-k</translation>
    </message>
    <message>
        <source>Only so many tokens; 0: all</source>
        <translation>Nur so viele Tokens; 0: alle</translation>
    </message>
    <message>
        <source>all</source>
        <translation>alle</translation>
    </message>
    <message>
        <source>Min-p</source>
        <translation>Min-p</translation>
    </message>
    <message>
        <source>Only tokens at least so likely, against the best</source>
        <translation>Nur Tokens, die verglichen mit dem besten so wahrscheinlich sind</translation>
    </message>
    <message>
        <source>new each time</source>
        <translation>jedes Mal neu</translation>
    </message>
    <message>
        <source>Seed</source>
        <translation>Startwert</translation>
    </message>
    <message>
        <source>The same seed gives the same answer</source>
        <translation>Derselbe Startwert ergibt dieselbe Antwort</translation>
    </message>
    <message>
        <source>Max tokens</source>
        <translation>Höchstlänge</translation>
    </message>
    <message>
        <source>Length of an answer</source>
        <translation>Länge einer Antwort</translation>
    </message>
    <message>
        <source>what fits</source>
        <translation>was passt</translation>
    </message>
    <message>
        <source>Thinking</source>
        <translation>Nachdenken</translation>
    </message>
    <message>
        <source>As the model has it</source>
        <translation>Wie vom Modell vorgesehen</translation>
    </message>
    <message>
        <source>On</source>
        <translation>Ein</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>Aus</translation>
    </message>
    <message>
        <source>Whether to think before answering, where the model can</source>
        <translation>Ob vor der Antwort nachgedacht wird, wo das Modell es kann</translation>
    </message>
    <message>
        <source>Drafter</source>
        <translation>Entwurfsmodell</translation>
    </message>
    <message>
        <source>Auto</source>
        <translation>Auto</translation>
    </message>
    <message>
        <source>Lookup</source>
        <translation>Nachschlagen</translation>
    </message>
    <message>
        <source>Off: plain</source>
        <translation>Aus: einfach</translation>
    </message>
    <message>
        <source>Changes the speed, never the answer</source>
        <translation>Ändert das Tempo, nie die Antwort</translation>
    </message>
    <message>
        <source>Draft depth</source>
        <translation>Entwurfstiefe</translation>
    </message>
    <message>
        <source>Tokens drafted per round</source>
        <translation>Tokens je Entwurfsrunde</translation>
    </message>
    <message>
        <source>JSON schema</source>
        <translation>JSON-Schema</translation>
    </message>
    <message>
        <source>Answers keep to it, token by token</source>
        <translation>Antworten halten sich daran, Token für Token</translation>
    </message>
    <message>
        <source>Tools (JSON)</source>
        <translation>Werkzeuge (JSON)</translation>
    </message>
    <message>
        <source>The model may call them; nothing runs them</source>
        <translation>Das Modell darf sie aufrufen; ausgeführt wird nichts</translation>
    </message>
    <message>
        <source>Save as default for this model</source>
        <translation>Als Vorgabe für dieses Modell sichern</translation>
    </message>
    <message>
        <source>Valid: answers keep to it</source>
        <translation>Gültig: Antworten halten sich daran</translation>
    </message>
    <message>
        <source>Valid: the model may call them</source>
        <translation>Gültig: Das Modell darf sie aufrufen</translation>
    </message>
    <message>
        <source>✗ Not in use: {0}</source>
        <translation>✗ Nicht in Gebrauch: {0}</translation>
    </message>
    <message>
        <source>Plain decoding is faster here ({0}×), so nobody drafts by default.</source>
        <translation>Einfaches Rechnen ist hier schneller ({0}×), darum entwirft von sich aus niemand.</translation>
    </message>
</context>
<context>
    <name>Pill</name>
    <message>
        <source>Loading {0}…</source>
        <translation>{0} wird geladen …</translation>
    </message>
    <message>
        <source>The model</source>
        <translation>Das Modell</translation>
    </message>
    <message>
        <source>{0} has stopped</source>
        <translation>{0} hat angehalten</translation>
    </message>
    <message>
        <source>No model is loaded</source>
        <translation>Es ist kein Modell geladen</translation>
    </message>
    <message>
        <source>Model: {0}</source>
        <translation>Modell: {0}</translation>
    </message>
    <message>
        <source>Choose a pair</source>
        <translation>Ein Paar wählen</translation>
    </message>
    <message>
        <source>Loading {0}, {1}</source>
        <translation>{0} wird geladen, {1}</translation>
    </message>
</context>
<context>
    <name>PlotChart</name>
    <message>
        <source>Loading charts…</source>
        <translation>Diagramme werden geladen …</translation>
    </message>
</context>
<context>
    <name>Popover</name>
    <message>
        <source>Choose a pair</source>
        <translation>Ein Paar wählen</translation>
    </message>
    <message>
        <source>Search pairs</source>
        <translation>Paare suchen</translation>
    </message>
    <message>
        <source>Pairs</source>
        <translation>Paare</translation>
    </message>
    <message>
        <source>No pair has that name.</source>
        <translation>Kein Paar heißt so.</translation>
    </message>
    <message>
        <source>Load</source>
        <translation>Laden</translation>
    </message>
    <message>
        <source>Unload</source>
        <translation>Entladen</translation>
    </message>
    <message>
        <source>Manage models…</source>
        <translation>Modelle verwalten …</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
</context>
<context>
    <name>PositionChart</name>
    <message>
        <source>Accepted by position</source>
        <translation>Angenommen nach Position</translation>
    </message>
    <message>
        <source>Position</source>
        <translation>Position</translation>
    </message>
    <message>
        <source>Share kept</source>
        <translation>Angenommener Anteil</translation>
    </message>
    <message>
        <source>Kept by position: {0}</source>
        <translation>Angenommen nach Position: {0}</translation>
    </message>
    <message>
        <source>nothing yet</source>
        <translation>noch nichts</translation>
    </message>
</context>
<context>
    <name>Precision</name>
    <message>
        <source>{0}, computed in {1}</source>
        <translation>{0}, gerechnet in {1}</translation>
    </message>
    <message>
        <source>{0}-bit</source>
        <translation>{0} Bit</translation>
    </message>
    <message>
        <source>{0}-bit group {1}</source>
        <translation>{0} Bit in Gruppen zu {1}</translation>
    </message>
</context>
<context>
    <name>PrivacyPage</name>
    <message>
        <source>Chats, settings and measurements stay on this machine. Nothing about you is sent.</source>
        <translation>Chats, Einstellungen und Messungen bleiben auf diesem Rechner. Über dich wird nichts gesendet.</translation>
    </message>
    <message>
        <source>Slipstream talks to:</source>
        <translation>Slipstream spricht mit:</translation>
    </message>
    <message>
        <source>Your data: {0}</source>
        <translation>Deine Daten: {0}</translation>
    </message>
    <message>
        <source>Show the folder</source>
        <translation>Ordner zeigen</translation>
    </message>
</context>
<context>
    <name>RaceArm</name>
    <message>
        <source>{0}: its answer</source>
        <translation>{0}: seine Antwort</translation>
    </message>
    <message>
        <source>tok/s</source>
        <translation>Tok/s</translation>
    </message>
    <message>
        <source>against plain</source>
        <translation>gegen einfach</translation>
    </message>
    <message>
        <source>Plain</source>
        <translation>Einfach</translation>
    </message>
    <message>
        <source>Lookup</source>
        <translation>Nachschlagen</translation>
    </message>
    <message>
        <source>Auto</source>
        <translation>Auto</translation>
    </message>
    <message>
        <source>Waiting for its turn</source>
        <translation>Wartet, bis er an der Reihe ist</translation>
    </message>
    <message>
        <source>Reading the prompt</source>
        <translation>Liest den Prompt</translation>
    </message>
    <message>
        <source>{0} tokens per round, {1} tok/s</source>
        <translation>{0} Tokens je Runde, {1} Tok/s</translation>
    </message>
    <message>
        <source>{0}×, one round</source>
        <translation>{0}×, eine Runde</translation>
    </message>
    <message>
        <source>{0} tokens per round</source>
        <translation>{0} Tokens je Runde</translation>
    </message>
    <message numerus="yes">
        <source>%Ln token(s)</source>
        <translation>
            <numerusform>%Ln Token</numerusform>
            <numerusform>%Ln Tokens</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln token(s), done</source>
        <translation>
            <numerusform>%Ln Token, fertig</numerusform>
            <numerusform>%Ln Tokens, fertig</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln token(s) after {0} s</source>
        <translation>
            <numerusform>%Ln Token nach {0} s</numerusform>
            <numerusform>%Ln Tokens nach {0} s</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>RaceGate</name>
    <message>
        <source>The model is loading.</source>
        <translation>Das Modell wird geladen.</translation>
    </message>
    <message>
        <source>Load the built-in pair</source>
        <translation>Mitgeliefertes Paar laden</translation>
    </message>
    <message>
        <source>Choose a pair…</source>
        <translation>Ein Paar wählen …</translation>
    </message>
    <message>
        <source>No model is loaded.</source>
        <translation>Es ist kein Modell geladen.</translation>
    </message>
    <message>
        <source>A race needs two arms: choose one beside plain.</source>
        <translation>Ein Rennen braucht zwei Teilnehmer: Wähle einen neben „Einfach“.</translation>
    </message>
    <message>
        <source>This pair has no drafter. Lookup can race against plain, or get a drafter for it.</source>
        <translation>Dieses Paar hat kein Entwurfsmodell. Nachschlagen kann gegen „Einfach“ antreten, oder lade ein Entwurfsmodell herunter.</translation>
    </message>
    <message>
        <source>Get a drafter…</source>
        <translation>Entwurfsmodell herunterladen …</translation>
    </message>
    <message numerus="yes">
        <source>%n client(s) are connected: results would be disturbed.</source>
        <translation>
            <numerusform>%n Client ist verbunden: Das würde die Ergebnisse stören.</numerusform>
            <numerusform>%n Clients sind verbunden: Das würde die Ergebnisse stören.</numerusform>
        </translation>
    </message>
    <message>
        <source>Pause clients</source>
        <translation>Clients pausieren</translation>
    </message>
    <message>
        <source>Run anyway (marked)</source>
        <translation>Trotzdem (mit Vermerk)</translation>
    </message>
    <message>
        <source>Write what every arm is to be asked.</source>
        <translation>Schreibe, was alle gefragt werden sollen.</translation>
    </message>
</context>
<context>
    <name>RaceOutcome</name>
    <message>
        <source>The report was copied, as Markdown.</source>
        <translation>Der Bericht wurde als Markdown kopiert.</translation>
    </message>
    <message>
        <source>Markdown (*.md);;JSON (*.json)</source>
        <translation>Markdown (*.md);;JSON (*.json)</translation>
    </message>
    <message>
        <source>Save the report</source>
        <translation>Bericht sichern</translation>
    </message>
    <message>
        <source>New chats use {0}.</source>
        <translation>Neue Chats verwenden {0}.</translation>
    </message>
    <message>
        <source>Choose {0} as this pair&apos;s drafter.</source>
        <translation>Wähle {0} als Entwurfsmodell dieses Paars.</translation>
    </message>
</context>
<context>
    <name>RaceScreen</name>
    <message>
        <source>Race</source>
        <translation>Rennen</translation>
    </message>
    <message>
        <source>warm-up</source>
        <translation>Warmlauf</translation>
    </message>
    <message>
        <source>round {0}</source>
        <translation>Runde {0}</translation>
    </message>
    <message>
        <source>Run {0} of {1}, {2}</source>
        <translation>Lauf {0} von {1}, {2}</translation>
    </message>
    <message>
        <source>Comparing what they said…</source>
        <translation>Die Antworten werden verglichen …</translation>
    </message>
    <message>
        <source>The race ended: {0}</source>
        <translation>Das Rennen endete: {0}</translation>
    </message>
    <message>
        <source>Stopped. Nothing is concluded from part of a race.</source>
        <translation>Angehalten. Aus einem halben Rennen folgt nichts.</translation>
    </message>
    <message>
        <source>Replay of separate runs: they did not run at the same time.</source>
        <translation>Wiedergabe einzelner Läufe: Sie liefen nicht gleichzeitig.</translation>
    </message>
    <message>
        <source>{0}, about {1} left</source>
        <translation>{0}, noch etwa {1}</translation>
    </message>
    <message>
        <source>Race finished: {0}</source>
        <translation>Das Rennen ist beendet: {0}</translation>
    </message>
    <message numerus="yes">
        <source>It begins when %n answer(s) to clients have ended.</source>
        <translation>
            <numerusform>Es beginnt, sobald %n Antwort an einen Client zu Ende ist.</numerusform>
            <numerusform>Es beginnt, sobald %n Antworten an Clients zu Ende sind.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Clients are paused: %n of their requests wait.</source>
        <translation>
            <numerusform>Clients sind pausiert: %n ihrer Anfragen wartet.</numerusform>
            <numerusform>Clients sind pausiert: %n ihrer Anfragen warten.</numerusform>
        </translation>
    </message>
    <message>
        <source>Let them go on</source>
        <translation>Weiterlaufen lassen</translation>
    </message>
</context>
<context>
    <name>RaceSetup</name>
    <message>
        <source>Prompt</source>
        <translation>Prompt</translation>
    </message>
    <message>
        <source>Tokens</source>
        <translation>Tokens</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>Temperatur</translation>
    </message>
    <message>
        <source>Seed</source>
        <translation>Startwert</translation>
    </message>
    <message>
        <source>Rounds</source>
        <translation>Runden</translation>
    </message>
    <message>
        <source>Start</source>
        <translation>Starten</translation>
    </message>
    <message>
        <source>Arms</source>
        <translation>Teilnehmer</translation>
    </message>
    <message>
        <source>Interleaved: the order rotates, so no arm always runs on a warmer machine. One warm-up each.</source>
        <translation>Verschränkt: Die Reihenfolge wechselt, damit keiner immer auf dem wärmeren Rechner läuft. Je einmal warmlaufen.</translation>
    </message>
    <message>
        <source>Code</source>
        <translation>Code</translation>
    </message>
    <message>
        <source>Maths</source>
        <translation>Mathematik</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>Chat</translation>
    </message>
    <message>
        <source>All three</source>
        <translation>Alle drei</translation>
    </message>
    <message>
        <source>My own…</source>
        <translation>Eigener …</translation>
    </message>
    <message>
        <source>What every arm is asked</source>
        <translation>Was alle gefragt werden</translation>
    </message>
    <message>
        <source>Your own prompt</source>
        <translation>Dein eigener Prompt</translation>
    </message>
    <message>
        <source>Tokens of each answer</source>
        <translation>Tokens je Antwort</translation>
    </message>
    <message>
        <source>Rounds of the race</source>
        <translation>Runden des Rennens</translation>
    </message>
    <message>
        <source>Thinking</source>
        <translation>Nachdenken</translation>
    </message>
    <message>
        <source>Arm: {0}</source>
        <translation>Teilnehmer: {0}</translation>
    </message>
    <message>
        <source>Plain decoding is what the others are compared with.</source>
        <translation>Mit dem einfachen Rechnen werden die anderen verglichen.</translation>
    </message>
    <message>
        <source>Chooses drafter and length each round, by what was kept and what it took.</source>
        <translation>Wählt in jeder Runde Entwurfsmodell und Länge danach, was angenommen wurde und wie lange es dauerte.</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Anhalten</translation>
    </message>
    <message>
        <source>⚠ Low power mode: speeds are lower, and the report will say so.</source>
        <translation>⚠ Stromsparmodus: Es geht langsamer, und der Bericht vermerkt es.</translation>
    </message>
    <message>
        <source>⚠ On battery: speeds may be lower, and the report will say so.</source>
        <translation>⚠ Akkubetrieb: Es geht vielleicht langsamer, und der Bericht vermerkt es.</translation>
    </message>
</context>
<context>
    <name>RaceVerdict</name>
    <message>
        <source>Copy report</source>
        <translation>Bericht kopieren</translation>
    </message>
    <message>
        <source>Save…</source>
        <translation>Sichern …</translation>
    </message>
    <message>
        <source>Save the report</source>
        <translation>Bericht sichern</translation>
    </message>
    <message>
        <source>Use the winner</source>
        <translation>Den Sieger verwenden</translation>
    </message>
    <message>
        <source>Marked: {0}.</source>
        <translation>Vermerkt: {0}.</translation>
    </message>
    <message>
        <source>Use {0}</source>
        <translation>{0} verwenden</translation>
    </message>
    <message>
        <source>Stop the replay</source>
        <translation>Abspielen anhalten</translation>
    </message>
    <message>
        <source>Replay side by side</source>
        <translation>Nebeneinander abspielen</translation>
    </message>
    <message>
        <source>Fastest</source>
        <translation>Am schnellsten</translation>
    </message>
    <message>
        <source>Does not repeat itself</source>
        <translation>Wiederholt sich nicht</translation>
    </message>
    <message>
        <source>Identical</source>
        <translation>Gleich</translation>
    </message>
    <message>
        <source>Numeric tie</source>
        <translation>Gleichstand</translation>
    </message>
    <message>
        <source>Different</source>
        <translation>Anders</translation>
    </message>
    <message>
        <source>Plain decoding does not repeat itself on this machine, so no arm can be held to it and no speed-up is claimed. {0}</source>
        <translation>Das einfache Rechnen wiederholt sich auf diesem Rechner nicht; daran lässt sich niemand messen, und kein Vorsprung wird behauptet. {0}</translation>
    </message>
    <message>
        <source>An arm said something else, so no speed-up is claimed. Please report this. {0}</source>
        <translation>Ein Teilnehmer sagte etwas anderes, daher wird kein Vorsprung behauptet. Bitte melden. {0}</translation>
    </message>
    <message>
        <source>Where they part, the two best choices were closer than rounding: {0}.</source>
        <translation>Wo sie auseinandergehen, lagen die beiden besten enger beieinander als die Rundung: {0}.</translation>
    </message>
    <message numerus="yes">
        <source>Identical output, %Ln token(s), {0} of {0} comparisons</source>
        <translation>
            <numerusform>Gleiche Ausgabe, %Ln Token, {0} von {0} Vergleichen</numerusform>
            <numerusform>Gleiche Ausgabe, %Ln Tokens, {0} von {0} Vergleichen</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n client(s) were connected</source>
        <translation>
            <numerusform>%n Client war verbunden</numerusform>
            <numerusform>%n Clients waren verbunden</numerusform>
        </translation>
    </message>
    <message>
        <source>clients that were paused were let go on before its end</source>
        <translation>pausierte Clients durften vor seinem Ende weiterlaufen</translation>
    </message>
    <message numerus="yes">
        <source>%n other request(s) ran during the race</source>
        <translation>
            <numerusform>%n andere Anfrage lief während des Rennens</numerusform>
            <numerusform>%n andere Anfragen liefen während des Rennens</numerusform>
        </translation>
    </message>
    <message>
        <source>this machine was {0} when the race began</source>
        <translation>dieser Rechner war ausgelastet, als das Rennen begann: {0}</translation>
    </message>
    <message>
        <source>this machine ran on its battery</source>
        <translation>dieser Rechner lief im Akkubetrieb</translation>
    </message>
    <message>
        <source>this machine was in its low power mode</source>
        <translation>dieser Rechner war im Stromsparmodus</translation>
    </message>
    <message>
        <source>this machine was hot</source>
        <translation>dieser Rechner war heiß</translation>
    </message>
    <message numerus="yes">
        <source>%n run(s) were repeated, as heat or power changed meanwhile</source>
        <translation>
            <numerusform>%n Lauf wurde wiederholt, weil sich Wärme oder Stromversorgung änderte</numerusform>
            <numerusform>%n Läufe wurden wiederholt, weil sich Wärme oder Stromversorgung änderte</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ReadingRow</name>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Do not attach them</source>
        <translation>Nicht anhängen</translation>
    </message>
    <message>
        <source>Reading {0}…</source>
        <translation>{0} wird gelesen …</translation>
    </message>
</context>
<context>
    <name>ReadyCard</name>
    <message>
        <source>Measure it here</source>
        <translation>Hier messen</translation>
    </message>
    <message>
        <source>Skip, measure later</source>
        <translation>Später messen</translation>
    </message>
    <message>
        <source>It could not be measured: {0}</source>
        <translation>Das ließ sich nicht messen: {0}</translation>
    </message>
    <message>
        <source>Not measured.</source>
        <translation>Nicht gemessen.</translation>
    </message>
    <message>
        <source>Measuring what its passes cost here: {0} of {1}</source>
        <translation>Misst, was seine Durchgänge hier kosten: {0} von {1}</translation>
    </message>
    <message>
        <source>This machine is {0}: measure later, in Settings.</source>
        <translation>Dieser Rechner ist {0}: später in den Einstellungen messen.</translation>
    </message>
    <message>
        <source>What its passes cost could not be measured: {0}</source>
        <translation>Was seine Durchgänge kosten, konnte nicht gemessen werden: {0}</translation>
    </message>
    <message>
        <source>What its passes cost here is known now, so Auto chooses well at once.</source>
        <translation>Was seine Durchgänge hier kosten, ist nun bekannt: „Auto“ wählt sofort gut.</translation>
    </message>
    <message>
        <source>Loading {0}…</source>
        <translation>{0} wird geladen …</translation>
    </message>
    <message>
        <source>{0} is loaded.</source>
        <translation>{0} ist geladen.</translation>
    </message>
    <message>
        <source>No model is loaded yet.</source>
        <translation>Es ist noch kein Modell geladen.</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Cancel loading</source>
        <translation>Laden abbrechen</translation>
    </message>
    <message>
        <source>Measuring: the same answers, plainly and with drafts…</source>
        <translation>Misst: dieselben Antworten, einfach und mit Entwürfen …</translation>
    </message>
    <message>
        <source>Measured here: {0}× as fast on code, {1}× on prose; plain decoding has {2} tok/s.</source>
        <translation>Hier gemessen: {0}× so schnell bei Code, {1}× bei Prosa; einfaches Rechnen schafft {2} Tok/s.</translation>
    </message>
    <message>
        <source>With and without drafts the answers are the same, token for token.</source>
        <translation>Mit und ohne Entwürfe sind die Antworten gleich, Token für Token.</translation>
    </message>
    <message>
        <source>The answers differ. Run a race to see where and why.</source>
        <translation>Die Antworten unterscheiden sich. Ein Rennen zeigt, wo und warum.</translation>
    </message>
    <message>
        <source>Loading {0}: {1}</source>
        <translation>{0} wird geladen: {1}</translation>
    </message>
</context>
<context>
    <name>RecoveryCard</name>
    <message>
        <source>Finished text is kept.</source>
        <translation>Fertiger Text bleibt erhalten.</translation>
    </message>
    <message>
        <source>Last lines of the log</source>
        <translation>Letzte Zeilen des Protokolls</translation>
    </message>
    <message>
        <source>Reload</source>
        <translation>Neu laden</translation>
    </message>
    <message>
        <source>Safe mode</source>
        <translation>Sicherer Modus</translation>
    </message>
    <message>
        <source>Without a drafter, with a context of 4,096 tokens</source>
        <translation>Ohne Entwurfsmodell, mit 4.096 Tokens Kontext</translation>
    </message>
    <message>
        <source>Another pair…</source>
        <translation>Anderes Paar …</translation>
    </message>
    <message>
        <source>Save report…</source>
        <translation>Bericht sichern …</translation>
    </message>
    <message>
        <source>Details</source>
        <translation>Einzelheiten</translation>
    </message>
    <message>
        <source>The model ran out of memory</source>
        <translation>Dem Modell ging der Speicher aus</translation>
    </message>
    <message>
        <source>The graphics processor gave up</source>
        <translation>Der Grafikprozessor hat aufgegeben</translation>
    </message>
    <message>
        <source>The model could not be loaded</source>
        <translation>Das Modell konnte nicht geladen werden</translation>
    </message>
    <message>
        <source>The model has stopped</source>
        <translation>Das Modell hat angehalten</translation>
    </message>
    <message>
        <source>The model does not answer</source>
        <translation>Das Modell antwortet nicht</translation>
    </message>
    <message numerus="yes">
        <source>Nothing has moved for %n seconds. Restart it; its answers so far are kept.</source>
        <translation>
            <numerusform>Seit %n Sekunde bewegt sich nichts. Bitte neu starten; bisherige Antworten bleiben.</numerusform>
            <numerusform>Seit %n Sekunden bewegt sich nichts. Bitte neu starten; bisherige Antworten bleiben.</numerusform>
        </translation>
    </message>
    <message>
        <source>Restart</source>
        <translation>Neu starten</translation>
    </message>
</context>
<context>
    <name>RemovalPanel</name>
    <message>
        <source>The files that go</source>
        <translation>Die Dateien, die verschwinden</translation>
    </message>
    <message>
        <source>Move to the Bin</source>
        <translation>In den Papierkorb</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>Behalten</translation>
    </message>
    <message numerus="yes">
        <source>%n file(s), {0}, would go.</source>
        <translation>
            <numerusform>%n Datei, {0}, würde verschwinden.</numerusform>
            <numerusform>%n Dateien, {0}, würden verschwinden.</numerusform>
        </translation>
    </message>
    <message>
        <source>The folder is shared with {0}.</source>
        <translation>Den Ordner benutzt auch {0}.</translation>
    </message>
    <message>
        <source>stays: {0} ({1})</source>
        <translation>bleibt: {0} ({1})</translation>
    </message>
</context>
<context>
    <name>RequestTable</name>
    <message>
        <source>Time</source>
        <translation>Zeit</translation>
    </message>
    <message>
        <source>Client</source>
        <translation>Client</translation>
    </message>
    <message>
        <source>Path</source>
        <translation>Pfad</translation>
    </message>
    <message>
        <source>Prompt</source>
        <translation>Prompt</translation>
    </message>
    <message>
        <source>Cached</source>
        <translation>Im Cache</translation>
    </message>
    <message>
        <source>Out</source>
        <translation>Antwort</translation>
    </message>
    <message>
        <source>tok/s</source>
        <translation>Tok/s</translation>
    </message>
    <message>
        <source>Status</source>
        <translation>Status</translation>
    </message>
    <message>
        <source>waiting</source>
        <translation>wartet</translation>
    </message>
    <message>
        <source>{0}, answering</source>
        <translation>{0}, antwortet</translation>
    </message>
    <message>
        <source>{0}, client left</source>
        <translation>{0}, Client ist weg</translation>
    </message>
    <message>
        <source>{0}, shortened</source>
        <translation>{0}, gekürzt</translation>
    </message>
</context>
<context>
    <name>RequestsView</name>
    <message>
        <source>Requests, newest first</source>
        <translation>Anfragen, neueste zuerst</translation>
    </message>
    <message>
        <source>No request yet. They appear here as clients ask.</source>
        <translation>Noch keine Anfrage. Sie erscheinen hier, sobald Clients fragen.</translation>
    </message>
    <message>
        <source>Details of the chosen request</source>
        <translation>Einzelheiten der gewählten Anfrage</translation>
    </message>
    <message>
        <source>What the client sent</source>
        <translation>Was der Client sandte</translation>
    </message>
    <message>
        <source>Choose a request to see more of it.</source>
        <translation>Wähle eine Anfrage, um mehr zu sehen.</translation>
    </message>
    <message>
        <source>From {0}, {1}</source>
        <translation>Von {0}, {1}</translation>
    </message>
    <message>
        <source>which does not say who it is</source>
        <translation>der nicht sagt, wer er ist</translation>
    </message>
    <message>
        <source>First token after {0} s, then {1} tok/s, {2} tokens per round</source>
        <translation>Erstes Token nach {0} s, dann {1} Tok/s, {2} Tokens je Runde</translation>
    </message>
    <message>
        <source>the client left, or the server was stopped</source>
        <translation>der Client ging, oder der Server wurde angehalten</translation>
    </message>
    <message>
        <source>Ended: {0}</source>
        <translation>Ende: {0}</translation>
    </message>
    <message>
        <source>Ignored fields: {0}</source>
        <translation>Nicht beachtete Felder: {0}</translation>
    </message>
    <message>
        <source>Its text was not kept.</source>
        <translation>Der Text wurde nicht aufgehoben.</translation>
    </message>
    <message numerus="yes">
        <source>Prompt %Ln token(s), {0} of them from the cache</source>
        <translation>
            <numerusform>Prompt %Ln Token, davon {0} aus dem Cache</numerusform>
            <numerusform>Prompt %Ln Tokens, davon {0} aus dem Cache</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>in %Ln round(s)</source>
        <translation>
            <numerusform>in einer Runde</numerusform>
            <numerusform>in %Ln Runden</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln token(s) out {0}</source>
        <translation>
            <numerusform>%Ln Token Antwort {0}</numerusform>
            <numerusform>%Ln Tokens Antwort {0}</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>The prompt did not fit: its oldest %Ln message(s) were not given to the model.</source>
        <translation>
            <numerusform>Der Prompt passte nicht: Seine älteste Nachricht bekam das Modell nicht.</numerusform>
            <numerusform>Der Prompt passte nicht: Seine ältesten %Ln Nachrichten bekam das Modell nicht.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>RoundStrip</name>
    <message>
        <source>Round</source>
        <translation>Runde</translation>
    </message>
    <message>
        <source>Source</source>
        <translation>Quelle</translation>
    </message>
    <message>
        <source>Drafted</source>
        <translation>Entworfen</translation>
    </message>
    <message>
        <source>Kept</source>
        <translation>Angenommen</translation>
    </message>
    <message>
        <source>Rounds</source>
        <translation>Runden</translation>
    </message>
    <message>
        <source>No round yet</source>
        <translation>Noch keine Runde</translation>
    </message>
    <message>
        <source>drafter</source>
        <translation>Entwurfsmodell</translation>
    </message>
    <message>
        <source>n-gram</source>
        <translation>N-Gramm</translation>
    </message>
    <message>
        <source>model alone</source>
        <translation>Modell allein</translation>
    </message>
</context>
<context>
    <name>Saving</name>
    <message>
        <source>Saved to {0}</source>
        <translation>Gesichert in {0}</translation>
    </message>
    <message>
        <source>{0} could not be written: {1}</source>
        <translation>{0} konnte nicht geschrieben werden: {1}</translation>
    </message>
</context>
<context>
    <name>Screens</name>
    <message>
        <source>Chat</source>
        <translation>Chat</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>Telemetry</source>
        <translation>Telemetrie</translation>
    </message>
    <message>
        <source>Race</source>
        <translation>Rennen</translation>
    </message>
    <message>
        <source>Server &amp; Agents</source>
        <translation>Server &amp; Agenten</translation>
    </message>
    <message>
        <source>Welcome</source>
        <translation>Willkommen</translation>
    </message>
</context>
<context>
    <name>ServerOptionsPage</name>
    <message>
        <source>Port</source>
        <translation>Port</translation>
    </message>
    <message>
        <source>Let other devices on the network in</source>
        <translation>Andere Geräte im Netz zulassen</translation>
    </message>
    <message>
        <source>None is asked for</source>
        <translation>Keiner wird verlangt</translation>
    </message>
    <message>
        <source>Key</source>
        <translation>Schlüssel</translation>
    </message>
    <message>
        <source>Show</source>
        <translation>Zeigen</translation>
    </message>
    <message>
        <source>Show the key</source>
        <translation>Schlüssel zeigen</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Copy the key</source>
        <translation>Schlüssel kopieren</translation>
    </message>
    <message>
        <source>New key</source>
        <translation>Neuer Schlüssel</translation>
    </message>
    <message>
        <source>Web pages that may call it</source>
        <translation>Webseiten, die ihn aufrufen dürfen</translation>
    </message>
    <message>
        <source>Web pages</source>
        <translation>Webseiten</translation>
    </message>
    <message>
        <source>Options</source>
        <translation>Optionen</translation>
    </message>
    <message>
        <source>Other devices reach it at {0}, with the key.</source>
        <translation>Andere Geräte erreichen ihn unter {0}, mit dem Schlüssel.</translation>
    </message>
    <message>
        <source>The key must be printable ASCII without blanks, and stays while others are let in.</source>
        <translation>Der Schlüssel muss aus druckbarem ASCII ohne Leerzeichen bestehen und bleibt, solange andere zugelassen sind.</translation>
    </message>
    <message>
        <source>Hide</source>
        <translation>Verbergen</translation>
    </message>
    <message>
        <source>A prompt that does not fit the context is refused with its length, never cut.</source>
        <translation>Ein Prompt, der nicht in den Kontext passt, wird mit seiner Länge abgelehnt, nie gekürzt.</translation>
    </message>
    <message>
        <source>Changes apply at once; where it has to, a running server starts again.</source>
        <translation>Änderungen gelten sofort; wo es nötig ist, startet ein laufender Server neu.</translation>
    </message>
    <message>
        <source>A prompt that does not fit the context loses its oldest turns; its client and the list of requests say so.</source>
        <translation>Ein Prompt, der nicht in den Kontext passt, verliert seine ältesten Wortwechsel; der Client und die Liste der Anfragen sagen es.</translation>
    </message>
</context>
<context>
    <name>ServerScreen</name>
    <message>
        <source>Part</source>
        <translation>Bereich</translation>
    </message>
    <message>
        <source>Agents</source>
        <translation>Agenten</translation>
    </message>
    <message>
        <source>Requests</source>
        <translation>Anfragen</translation>
    </message>
    <message>
        <source>Options</source>
        <translation>Optionen</translation>
    </message>
    <message>
        <source>Log</source>
        <translation>Protokoll</translation>
    </message>
    <message>
        <source>Server &amp; Agents</source>
        <translation>Server &amp; Agenten</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Copy the base URL</source>
        <translation>Basis-URL kopieren</translation>
    </message>
    <message>
        <source>another program</source>
        <translation>ein anderes Programm</translation>
    </message>
    <message>
        <source>Port {0} is used by {1}.</source>
        <translation>Port {0} wird von {1} benutzt.</translation>
    </message>
    <message>
        <source>Use port {0}</source>
        <translation>Port {0} nehmen</translation>
    </message>
    <message>
        <source>● Serving at {0}</source>
        <translation>● Erreichbar unter {0}</translation>
    </message>
    <message>
        <source>○ Starting…</source>
        <translation>○ Startet …</translation>
    </message>
    <message>
        <source>○ Not serving</source>
        <translation>○ Nicht erreichbar</translation>
    </message>
    <message>
        <source>○ The server is off</source>
        <translation>○ Der Server ist aus</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Anhalten</translation>
    </message>
    <message>
        <source>Start server</source>
        <translation>Server starten</translation>
    </message>
    <message>
        <source>Other devices: http://{0}:{1}</source>
        <translation>Andere Geräte: http://{0}:{1}</translation>
    </message>
    <message>
        <source>Key: on</source>
        <translation>Schlüssel: an</translation>
    </message>
    <message>
        <source>Key: off (this machine only)</source>
        <translation>Schlüssel: aus (nur dieser Rechner)</translation>
    </message>
    <message>
        <source>Turned away: {0}, last from {1}</source>
        <translation>Abgewiesen: {0}, zuletzt von {1}</translation>
    </message>
    <message>
        <source>Coding agents and other programs on this machine can use the loaded model through it.</source>
        <translation>Programmieragenten und andere Programme auf diesem Rechner können damit das geladene Modell nutzen.</translation>
    </message>
    <message>
        <source>No model is loaded: requests are refused until one is.</source>
        <translation>Es ist kein Modell geladen: Bis dahin werden Anfragen abgelehnt.</translation>
    </message>
    <message>
        <source>Model: {0}</source>
        <translation>Modell: {0}</translation>
    </message>
    <message>
        <source>Copied {0}</source>
        <translation>{0} kopiert</translation>
    </message>
    <message>
        <source>Each change is shown before it is written, kept as a dated backup, and can be undone.</source>
        <translation>Jede Änderung wird vorher gezeigt, mit Datum gesichert und kann rückgängig gemacht werden.</translation>
    </message>
    <message>
        <source>Requests ({0})</source>
        <translation>Anfragen ({0})</translation>
    </message>
    <message>
        <source>Keep request text (until Slipstream is quit)</source>
        <translation>Text der Anfragen aufheben (bis Slipstream beendet wird)</translation>
    </message>
    <message>
        <source>Clear</source>
        <translation>Leeren</translation>
    </message>
    <message>
        <source>Clear the requests</source>
        <translation>Anfragen leeren</translation>
    </message>
    <message>
        <source>No model is loaded: the first request loads {0}.</source>
        <translation>Es ist kein Modell geladen: Die erste Anfrage lädt {0}.</translation>
    </message>
    <message>
        <source>Let them go on</source>
        <translation>Weiterlaufen lassen</translation>
    </message>
    <message>
        <source>The race goes on beside them, and is marked.</source>
        <translation>Das Rennen läuft neben ihnen weiter und bekommt einen Vermerk.</translation>
    </message>
    <message numerus="yes">
        <source>Clients are paused by the race: %n request(s) wait.</source>
        <translation>
            <numerusform>Clients warten auf das Rennen: %n Anfrage wartet.</numerusform>
            <numerusform>Clients warten auf das Rennen: %n Anfragen warten.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ServerSwitch</name>
    <message>
        <source>The server could not start: {0}</source>
        <translation>Der Server konnte nicht starten: {0}</translation>
    </message>
    <message>
        <source>Server settings</source>
        <translation>Server-Einstellungen</translation>
    </message>
</context>
<context>
    <name>SessionTable</name>
    <message>
        <source>Source</source>
        <translation>Quelle</translation>
    </message>
    <message>
        <source>Requests</source>
        <translation>Anfragen</translation>
    </message>
    <message>
        <source>Prompt tokens</source>
        <translation>Tokens Prompt</translation>
    </message>
    <message>
        <source>Cached</source>
        <translation>Im Cache</translation>
    </message>
    <message>
        <source>Tokens out</source>
        <translation>Tokens Antwort</translation>
    </message>
    <message>
        <source>Per round</source>
        <translation>Je Runde</translation>
    </message>
    <message>
        <source>Accepted</source>
        <translation>Angenommen</translation>
    </message>
    <message>
        <source>Last tok/s</source>
        <translation>Letzte Tok/s</translation>
    </message>
    <message>
        <source>This session by source</source>
        <translation>Diese Sitzung nach Quelle</translation>
    </message>
    <message>
        <source>All</source>
        <translation>Alle</translation>
    </message>
</context>
<context>
    <name>SessionsList</name>
    <message>
        <source>Search</source>
        <translation>Suchen</translation>
    </message>
    <message>
        <source>Search all chats</source>
        <translation>Alle Chats durchsuchen</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>Neuer Chat</translation>
    </message>
    <message>
        <source>Chats</source>
        <translation>Chats</translation>
    </message>
    <message>
        <source>Nothing found</source>
        <translation>Nichts gefunden</translation>
    </message>
    <message>
        <source>No chats yet</source>
        <translation>Noch keine Chats</translation>
    </message>
    <message>
        <source>Rename…</source>
        <translation>Umbenennen …</translation>
    </message>
    <message>
        <source>Export…</source>
        <translation>Exportieren …</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>Löschen</translation>
    </message>
    <message>
        <source>Rename chat</source>
        <translation>Chat umbenennen</translation>
    </message>
    <message>
        <source>Title</source>
        <translation>Titel</translation>
    </message>
</context>
<context>
    <name>Settings</name>
    <message>
        <source>Language</source>
        <translation>Sprache</translation>
    </message>
    <message>
        <source>Takes effect when Slipstream is opened again.</source>
        <translation>Gilt, sobald Slipstream neu geöffnet wird.</translation>
    </message>
    <message>
        <source>As the system</source>
        <translation>Wie das System</translation>
    </message>
    <message>
        <source>Detail</source>
        <translation>Ausführlichkeit</translation>
    </message>
    <message>
        <source>How much is shown. Nothing behaves differently.</source>
        <translation>Wie viel gezeigt wird. Am Verhalten ändert sich nichts.</translation>
    </message>
    <message>
        <source>Simple: speed, fit, stop</source>
        <translation>Einfach: Tempo, Platz, Anhalten</translation>
    </message>
    <message>
        <source>Standard</source>
        <translation>Normal</translation>
    </message>
    <message>
        <source>Expert: curves, rounds, raw JSON</source>
        <translation>Experte: Kurven, Runden, rohes JSON</translation>
    </message>
    <message>
        <source>Show in the menu bar</source>
        <translation>In der Menüleiste zeigen</translation>
    </message>
    <message>
        <source>Speed, server and model at hand while the window is closed.</source>
        <translation>Tempo, Server und Modell zur Hand, während das Fenster zu ist.</translation>
    </message>
    <message>
        <source>Open at login</source>
        <translation>Bei der Anmeldung öffnen</translation>
    </message>
    <message>
        <source>Slipstream starts in the menu bar, without a window.</source>
        <translation>Slipstream startet ohne Fenster in der Menüleiste.</translation>
    </message>
    <message>
        <source>Load the last pair when opened</source>
        <translation>Beim Öffnen das letzte Paar laden</translation>
    </message>
    <message>
        <source>Appearance</source>
        <translation>Erscheinungsbild</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>Hell</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>Dunkel</translation>
    </message>
    <message>
        <source>Accent colour</source>
        <translation>Akzentfarbe</translation>
    </message>
    <message>
        <source>The system&apos;s is used where it can be read against the background.</source>
        <translation>Die des Systems gilt, wo sie sich vom Hintergrund abhebt.</translation>
    </message>
    <message>
        <source>Blue</source>
        <translation>Blau</translation>
    </message>
    <message>
        <source>Purple</source>
        <translation>Lila</translation>
    </message>
    <message>
        <source>Pink</source>
        <translation>Rosa</translation>
    </message>
    <message>
        <source>Red</source>
        <translation>Rot</translation>
    </message>
    <message>
        <source>Orange</source>
        <translation>Orange</translation>
    </message>
    <message>
        <source>Green</source>
        <translation>Grün</translation>
    </message>
    <message>
        <source>Graphite</source>
        <translation>Graphit</translation>
    </message>
    <message>
        <source>Text size</source>
        <translation>Textgröße</translation>
    </message>
    <message>
        <source>Code font</source>
        <translation>Schrift für Code</translation>
    </message>
    <message>
        <source>Reduce motion</source>
        <translation>Weniger Bewegung</translation>
    </message>
    <message>
        <source>Replays and gauges jump instead of moving.</source>
        <translation>Wiedergaben und Anzeigen springen, statt sich zu bewegen.</translation>
    </message>
    <message>
        <source>Return sends</source>
        <translation>Return sendet</translation>
    </message>
    <message>
        <source>Off: Return breaks the line and Command-Return sends.</source>
        <translation>Aus: Return beginnt eine neue Zeile, Befehl-Return sendet.</translation>
    </message>
    <message>
        <source>Longest reply</source>
        <translation>Längste Antwort</translation>
    </message>
    <message>
        <source>For new chats; each chat can have its own.</source>
        <translation>Für neue Chats; jeder Chat kann einen eigenen Wert haben.</translation>
    </message>
    <message>
        <source>tokens</source>
        <translation>Tokens</translation>
    </message>
    <message>
        <source>Delete chats after</source>
        <translation>Chats löschen nach</translation>
    </message>
    <message>
        <source>days</source>
        <translation>Tagen</translation>
    </message>
    <message>
        <source>Another folder with models</source>
        <translation>Noch ein Ordner mit Modellen</translation>
    </message>
    <message>
        <source>Looked through beside the shared model cache. Nothing is copied.</source>
        <translation>Wird neben dem gemeinsamen Modell-Cache durchsucht. Nichts wird kopiert.</translation>
    </message>
    <message>
        <source>Who drafts</source>
        <translation>Wer entwirft</translation>
    </message>
    <message>
        <source>Automatic</source>
        <translation>Auto</translation>
    </message>
    <message>
        <source>Nobody: plain decoding</source>
        <translation>Niemand: einfach rechnen</translation>
    </message>
    <message>
        <source>Lookup in the text so far</source>
        <translation>Nachschlagen im bisherigen Text</translation>
    </message>
    <message>
        <source>Longest draft</source>
        <translation>Längster Entwurf</translation>
    </message>
    <message>
        <source>Memory of the context</source>
        <translation>Speicher für den Kontext</translation>
    </message>
    <message>
        <source>Packed, it takes less memory and rounds a little. From the next load on.</source>
        <translation>Gepackt braucht er weniger Platz und rundet etwas. Ab dem nächsten Laden.</translation>
    </message>
    <message>
        <source>Full precision</source>
        <translation>Volle Genauigkeit</translation>
    </message>
    <message>
        <source>8 bits</source>
        <translation>8 Bit</translation>
    </message>
    <message>
        <source>4 bits</source>
        <translation>4 Bit</translation>
    </message>
    <message>
        <source>Unload when idle for</source>
        <translation>Ungenutzt entladen nach</translation>
    </message>
    <message>
        <source>minutes</source>
        <translation>Minuten</translation>
    </message>
    <message>
        <source>Start the server when Slipstream is opened</source>
        <translation>Den Server beim Öffnen von Slipstream starten</translation>
    </message>
    <message>
        <source>Port</source>
        <translation>Port</translation>
    </message>
    <message>
        <source>Let other devices on the network in</source>
        <translation>Andere Geräte im Netz zulassen</translation>
    </message>
    <message>
        <source>They need the key; one is made if there is none.</source>
        <translation>Sie brauchen den Schlüssel; gibt es keinen, wird einer gemacht.</translation>
    </message>
    <message>
        <source>Key</source>
        <translation>Schlüssel</translation>
    </message>
    <message>
        <source>What clients must send. Empty: none is asked for, on this machine alone.</source>
        <translation>Was Clients senden müssen. Leer: keiner wird verlangt, nur auf diesem Rechner.</translation>
    </message>
    <message>
        <source>Web pages that may call it</source>
        <translation>Webseiten, die ihn aufrufen dürfen</translation>
    </message>
    <message>
        <source>Such as https://chat.example, with spaces between. Any other page is refused.</source>
        <translation>Etwa https://chat.example, durch Leerzeichen getrennt. Jede andere Seite wird abgewiesen.</translation>
    </message>
    <message>
        <source>Keep request text</source>
        <translation>Text der Anfragen aufheben</translation>
    </message>
    <message>
        <source>Shows what clients sent in the list of requests, until Slipstream is quit.</source>
        <translation>Zeigt in der Liste der Anfragen, was Clients sandten, bis Slipstream beendet wird.</translation>
    </message>
    <message>
        <source>General</source>
        <translation>Allgemein</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>Chat</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>Performance</source>
        <translation>Leistung</translation>
    </message>
    <message>
        <source>Server</source>
        <translation>Server</translation>
    </message>
    <message>
        <source>Privacy</source>
        <translation>Datenschutz</translation>
    </message>
    <message>
        <source>About</source>
        <translation>Über</translation>
    </message>
    <message>
        <source>models and drafters, when you download them</source>
        <translation>Modelle und Entwurfsmodelle, wenn du sie herunterlädst</translation>
    </message>
    <message>
        <source>Choose…</source>
        <translation>Wählen …</translation>
    </message>
    <message>
        <source>What fits the context</source>
        <translation>Was in den Kontext passt</translation>
    </message>
    <message>
        <source>Counted from the last message; done when Slipstream is opened.</source>
        <translation>Gezählt ab der letzten Nachricht; geschieht beim Öffnen von Slipstream.</translation>
    </message>
    <message>
        <source>Never</source>
        <translation>Nie</translation>
    </message>
    <message>
        <source>As the drafter likes</source>
        <translation>Wie das Entwurfsmodell will</translation>
    </message>
    <message>
        <source>Never: it stays loaded</source>
        <translation>Nie: es bleibt geladen</translation>
    </message>
    <message>
        <source>Prompts kept in memory</source>
        <translation>Prompts im Speicher</translation>
    </message>
    <message>
        <source>A prompt that begins as an earlier one is read from there. From the next load on.</source>
        <translation>Ein Prompt, der wie ein früherer beginnt, wird von dort gelesen. Ab dem nächsten Laden.</translation>
    </message>
    <message>
        <source>An eighth of the memory</source>
        <translation>Ein Achtel des Speichers</translation>
    </message>
    <message>
        <source>Prompts kept on disk</source>
        <translation>Prompts auf der Platte</translation>
    </message>
    <message>
        <source>They outlive a restart. From the next load on.</source>
        <translation>Sie überstehen einen Neustart. Ab dem nächsten Laden.</translation>
    </message>
    <message>
        <source>10 GB at most</source>
        <translation>Höchstens 10 GB</translation>
    </message>
    <message>
        <source>Look for updates once a day</source>
        <translation>Einmal am Tag nach Updates sehen</translation>
    </message>
    <message>
        <source>One request to the list of releases; nothing about you is sent. Nothing is installed by itself.</source>
        <translation>Eine Anfrage an die Liste der Versionen; nichts über dich wird gesendet. Nichts wird von selbst installiert.</translation>
    </message>
    <message>
        <source>Updates</source>
        <translation>Updates</translation>
    </message>
    <message>
        <source>The next request to the server loads it again.</source>
        <translation>Die nächste Anfrage an den Server lädt es wieder.</translation>
    </message>
    <message>
        <source>Load the last pair when a request comes</source>
        <translation>Das letzte Paar laden, wenn eine Anfrage kommt</translation>
    </message>
    <message>
        <source>Off: requests are refused while no model is loaded.</source>
        <translation>Aus: Anfragen werden abgelehnt, solange kein Modell geladen ist.</translation>
    </message>
    <message>
        <source>Answers written together</source>
        <translation>Gemeinsam geschriebene Antworten</translation>
    </message>
    <message>
        <source>For agents that ask several things at once: more in all, each one a little slower, every text the same. From the next load on.</source>
        <translation>Für Agenten, die vieles zugleich fragen: insgesamt mehr, jede einzelne etwas langsamer, jeder Text derselbe. Ab dem nächsten Laden.</translation>
    </message>
    <message>
        <source>For new chats. The text is the same under every choice; only the speed differs. Where the loaded pair has no such drafter, Automatic holds.</source>
        <translation>Für neue Chats. Der Text ist bei jeder Wahl derselbe; nur das Tempo ist anders. Hat das geladene Paar dieses Entwurfsmodell nicht, gilt „Auto“.</translation>
    </message>
    <message>
        <source>MTP heads of the model</source>
        <translation>MTP-Köpfe des Modells</translation>
    </message>
    <message>
        <source>Titles of chats</source>
        <translation>Titel der Chats</translation>
    </message>
    <message>
        <source>For new chats; a title can be changed in the list.</source>
        <translation>Für neue Chats; ein Titel lässt sich in der Liste ändern.</translation>
    </message>
    <message>
        <source>The first words of the question</source>
        <translation>Die ersten Wörter der Frage</translation>
    </message>
    <message>
        <source>Date and time: the list shows no words of a chat</source>
        <translation>Datum und Uhrzeit: die Liste zeigt keine Wörter eines Chats</translation>
    </message>
    <message>
        <source>Preferred bits</source>
        <translation>Bevorzugte Bits</translation>
    </message>
    <message>
        <source>Of models that are suggested or downloaded by name, where they are published so. Fewer bits take less memory and are faster; more keep closer to the original.</source>
        <translation>Von Modellen, die vorgeschlagen oder mit ihrem Namen heruntergeladen werden, wo es sie so gibt. Weniger Bits brauchen weniger Speicher und sind schneller; mehr bleiben näher am Original.</translation>
    </message>
    <message>
        <source>As recommended for each model</source>
        <translation>Wie für jedes Modell empfohlen</translation>
    </message>
    <message>
        <source>16 bits (bfloat16)</source>
        <translation>16 Bit (bfloat16)</translation>
    </message>
    <message>
        <source>Disk for models</source>
        <translation>Platz für Modelle</translation>
    </message>
    <message>
        <source>A download that would pass it is refused. Nothing is deleted by itself; the button shows what could go.</source>
        <translation>Ein Download, der darüber hinausginge, wird abgelehnt. Von selbst wird nichts gelöscht; der Knopf zeigt, was gehen könnte.</translation>
    </message>
    <message>
        <source>No limit</source>
        <translation>Keine Grenze</translation>
    </message>
    <message>
        <source>Prompts that do not fit</source>
        <translation>Prompts, die nicht passen</translation>
    </message>
    <message>
        <source>What was dropped is said to the client and in the list of requests. Agents want a refusal.</source>
        <translation>Was wegfiel, erfährt der Client, und es steht in der Liste der Anfragen. Agenten brauchen eine Ablehnung.</translation>
    </message>
    <message>
        <source>Refuse, with the length</source>
        <translation>Ablehnen, mit der Länge</translation>
    </message>
    <message>
        <source>Drop the oldest turns</source>
        <translation>Die ältesten Wortwechsel weglassen</translation>
    </message>
    <message>
        <source>Channel</source>
        <translation>Kanal</translation>
    </message>
    <message>
        <source>Finished releases</source>
        <translation>Fertige Versionen</translation>
    </message>
    <message>
        <source>Pre-releases too: earlier, and less tried</source>
        <translation>Auch Vorabversionen: früher und weniger erprobt</translation>
    </message>
    <message>
        <source>the list of releases, when you ask for it under Updates, or once a day if you switch that on</source>
        <translation>die Liste der Versionen, wenn du unter „Updates“ danach fragst, oder einmal am Tag, wenn du das einschaltest</translation>
    </message>
</context>
<context>
    <name>SettingsWindow</name>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
    <message>
        <source>Pages</source>
        <translation>Seiten</translation>
    </message>
</context>
<context>
    <name>Shell</name>
    <message>
        <source>Slipstream ended while it was loading {0}, so it was not loaded again.</source>
        <translation>Slipstream endete, während {0} geladen wurde; daher wurde es nicht wieder geladen.</translation>
    </message>
    <message>
        <source>Load it</source>
        <translation>Laden</translation>
    </message>
    <message>
        <source>Save report</source>
        <translation>Bericht sichern</translation>
    </message>
    <message>
        <source>pair</source>
        <translation>Paar</translation>
    </message>
    <message>
        <source>Load {0}</source>
        <translation>{0} laden</translation>
    </message>
    <message>
        <source>setting</source>
        <translation>Einstellung</translation>
    </message>
    <message numerus="yes">
        <source>%n clients are using the server. Quit anyway?</source>
        <translation>
            <numerusform>Ein Client benutzt den Server. Trotzdem beenden?</numerusform>
            <numerusform>%n Clients benutzen den Server. Trotzdem beenden?</numerusform>
        </translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>Beenden</translation>
    </message>
    <message>
        <source>Slipstream {0} is out.</source>
        <translation>Slipstream {0} ist erschienen.</translation>
    </message>
    <message>
        <source>What is new</source>
        <translation>Was ist neu</translation>
    </message>
    <message>
        <source>The drafter for {0} is half made.</source>
        <translation>Das Entwurfsmodell für {0} ist halb fertig.</translation>
    </message>
    <message>
        <source>Show</source>
        <translation>Zeigen</translation>
    </message>
    <message>
        <source>The drafter for {0} is made.</source>
        <translation>Das Entwurfsmodell für {0} ist fertig.</translation>
    </message>
</context>
<context>
    <name>ShortcutSheet</name>
    <message>
        <source>Keyboard Shortcuts</source>
        <translation>Tastaturkurzbefehle</translation>
    </message>
</context>
<context>
    <name>Sidebar</name>
    <message>
        <source>Screens</source>
        <translation>Bereiche</translation>
    </message>
</context>
<context>
    <name>Sources</name>
    <message>
        <source>Chat</source>
        <translation>Chat</translation>
    </message>
    <message>
        <source>Race</source>
        <translation>Rennen</translation>
    </message>
    <message>
        <source>Verify</source>
        <translation>Prüfen</translation>
    </message>
    <message>
        <source>API client</source>
        <translation>API-Client</translation>
    </message>
    <message>
        <source>Self-test</source>
        <translation>Selbsttest</translation>
    </message>
</context>
<context>
    <name>SpeedChart</name>
    <message>
        <source>Seconds ago</source>
        <translation>Vor Sekunden</translation>
    </message>
    <message>
        <source>Tokens per second</source>
        <translation>Tokens je Sekunde</translation>
    </message>
    <message>
        <source>Speed, 60 s</source>
        <translation>Tempo, 60 s</translation>
    </message>
    <message>
        <source>Up to {0} tokens per second in the last minute</source>
        <translation>Bis zu {0} Tokens je Sekunde in der letzten Minute</translation>
    </message>
    <message>
        <source>plain: {0}</source>
        <translation>einfach: {0}</translation>
    </message>
</context>
<context>
    <name>SpeedHistory</name>
    <message>
        <source>Day</source>
        <translation>Tag</translation>
    </message>
    <message>
        <source>Source</source>
        <translation>Quelle</translation>
    </message>
    <message>
        <source>Requests</source>
        <translation>Anfragen</translation>
    </message>
    <message>
        <source>Tokens out</source>
        <translation>Tokens Antwort</translation>
    </message>
    <message>
        <source>tok/s, median</source>
        <translation>Tok/s, Median</translation>
    </message>
    <message>
        <source>tok/s, slow tenth</source>
        <translation>Tok/s, langsames Zehntel</translation>
    </message>
    <message>
        <source>Cached</source>
        <translation>Im Cache</translation>
    </message>
    <message>
        <source>History by day and source</source>
        <translation>Verlauf nach Tag und Quelle</translation>
    </message>
    <message>
        <source>Clear…</source>
        <translation>Leeren …</translation>
    </message>
    <message>
        <source>Clear the history</source>
        <translation>Verlauf leeren</translation>
    </message>
    <message>
        <source>Kept for {0} days, on this machine alone. No text is kept.</source>
        <translation>{0} Tage aufgehoben, nur auf diesem Rechner. Kein Text wird aufgehoben.</translation>
    </message>
    <message>
        <source>Nothing yet. {0}</source>
        <translation>Noch nichts. {0}</translation>
    </message>
    <message>
        <source>Really clear</source>
        <translation>Wirklich leeren</translation>
    </message>
</context>
<context>
    <name>SpeedPopover</name>
    <message>
        <source>Why this speed</source>
        <translation>Warum so schnell</translation>
    </message>
    <message>
        <source>rounds</source>
        <translation>Runden</translation>
    </message>
    <message>
        <source>tokens per round</source>
        <translation>Tokens je Runde</translation>
    </message>
    <message>
        <source>of drafts accepted</source>
        <translation>der Entwürfe angenommen</translation>
    </message>
    <message>
        <source>The answer, each token with the letter of its source</source>
        <translation>Die Antwort, jedes Token mit dem Buchstaben seiner Quelle</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Too short to say: a few tokens are a matter of luck.</source>
        <translation>Zu kurz für eine Aussage: Bei wenigen Tokens entscheidet das Glück.</translation>
    </message>
    <message>
        <source>Plain decoding was asked for, so every token took one pass of the model.</source>
        <translation>Einfaches Rechnen war verlangt, daher brauchte jedes Token einen Durchgang des Modells.</translation>
    </message>
    <message>
        <source>No drafter is loaded for this model: almost every token took a pass of its own.</source>
        <translation>Für dieses Modell ist kein Entwurfsmodell geladen: Fast jedes Token brauchte einen eigenen Durchgang.</translation>
    </message>
    <message>
        <source>Drafting stopped at {0} tokens of context: plain decoding is faster there.</source>
        <translation>Ab {0} Tokens Kontext wurde nicht mehr entworfen: Einfach ist dort schneller.</translation>
    </message>
    <message>
        <source>{1} of the text repeats what came before, so it was looked up instead of drafted.</source>
        <translation>{1} des Textes wiederholt Früheres und wurde daher nachgeschlagen statt entworfen.</translation>
    </message>
    <message>
        <source>The schema left one way to go on for much of the text, which costs nothing.</source>
        <translation>Das Schema ließ für viel Text nur einen Weg, und der kostet nichts.</translation>
    </message>
    <message>
        <source>Only {2} of the drafts were right: this text is hard to foresee for the drafter.</source>
        <translation>Nur {2} der Entwürfe stimmten: Dieser Text ist für das Entwurfsmodell schwer vorherzusehen.</translation>
    </message>
    <message>
        <source>{2} of the drafts were right, so each pass of the model made several tokens.</source>
        <translation>{2} der Entwürfe stimmten, daher machte jeder Durchgang des Modells mehrere Tokens.</translation>
    </message>
    <message>
        <source>D drafter</source>
        <translation>D Entwurfsmodell</translation>
    </message>
    <message>
        <source>N lookup</source>
        <translation>N Nachschlagen</translation>
    </message>
    <message>
        <source>G schema</source>
        <translation>G Schema</translation>
    </message>
    <message>
        <source>M model</source>
        <translation>M Modell</translation>
    </message>
</context>
<context>
    <name>SpeedVerdict</name>
    <message>
        <source>Verdict</source>
        <translation>Urteil</translation>
    </message>
    <message>
        <source>Nothing to judge yet.</source>
        <translation>Noch gibt es nichts zu beurteilen.</translation>
    </message>
    <message>
        <source>Plain decoding: one token for each pass over the model.</source>
        <translation>Einfaches Rechnen: ein Token je Durchgang des Modells.</translation>
    </message>
    <message>
        <source>Few drafts are kept ({0}): this text surprises the drafter. Code and rewriting suit it better.</source>
        <translation>Wenige Entwürfe werden angenommen ({0}): Dieser Text überrascht das Entwurfsmodell. Code und Umschreiben liegen ihm mehr.</translation>
    </message>
    <message>
        <source>{0} times as fast as plain decoding on this machine ({1} tok/s): {2} tokens a pass.</source>
        <translation>{0}-mal so schnell wie einfaches Rechnen auf diesem Rechner ({1} Tok/s): {2} Tokens je Durchgang.</translation>
    </message>
    <message>
        <source>{0} tokens for each pass over the model, where plain decoding gets one.</source>
        <translation>{0} Tokens je Durchgang des Modells, wo einfaches Rechnen eines bekommt.</translation>
    </message>
    <message>
        <source>How fast plain decoding is here was not measured yet: run a Race.</source>
        <translation>Wie schnell einfaches Rechnen hier ist, wurde noch nicht gemessen: Starte ein Rennen.</translation>
    </message>
    <message>
        <source>Bandwidth-bound: plain decoding uses {0} of this machine&apos;s measured memory bandwidth.</source>
        <translation>Durch die Bandbreite begrenzt: Einfaches Rechnen nutzt {0} der gemessenen Speicherbandbreite dieses Rechners.</translation>
    </message>
    <message>
        <source>Not bandwidth-bound: plain decoding uses {0} of this machine&apos;s measured memory bandwidth.</source>
        <translation>Nicht durch die Bandbreite begrenzt: Einfaches Rechnen nutzt {0} der gemessenen Speicherbandbreite dieses Rechners.</translation>
    </message>
</context>
<context>
    <name>StateLine</name>
    <message>
        <source>Prompt read</source>
        <translation>Prompt gelesen</translation>
    </message>
    <message>
        <source>Continue</source>
        <translation>Fortsetzen</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Stopped by you</source>
        <translation>Von dir angehalten</translation>
    </message>
    <message>
        <source>Stopped as the model was unloaded</source>
        <translation>Angehalten, weil das Modell entladen wurde</translation>
    </message>
    <message>
        <source>Interrupted: Slipstream ended while this was written</source>
        <translation>Unterbrochen: Slipstream endete, während dies geschrieben wurde</translation>
    </message>
    <message>
        <source>The engine stopped</source>
        <translation>Die Engine hat angehalten</translation>
    </message>
    <message>
        <source>{0} The text until then is saved.</source>
        <translation>{0} Der Text bis dahin ist gesichert.</translation>
    </message>
    <message>
        <source>Cut at the length limit</source>
        <translation>An der Höchstlänge abgeschnitten</translation>
    </message>
    <message>
        <source>Preparing…</source>
        <translation>Wird vorbereitet …</translation>
    </message>
    <message>
        <source>Waiting for its turn…</source>
        <translation>Wartet, bis es an der Reihe ist …</translation>
    </message>
    <message>
        <source>Reading {0} of {1} tokens</source>
        <translation>Liest {0} von {1} Tokens</translation>
    </message>
    <message>
        <source>{0}, about {1} s</source>
        <translation>{0}, etwa {1} s</translation>
    </message>
</context>
<context>
    <name>StatsStrip</name>
    <message>
        <source>Figures of this answer</source>
        <translation>Zahlen dieser Antwort</translation>
    </message>
    <message>
        <source>{0} tok/s</source>
        <translation>{0} Tok/s</translation>
    </message>
    <message>
        <source>Decode speed: tokens after the first, by the time from the first to the last</source>
        <translation>Tempo beim Schreiben: Tokens nach dem ersten, geteilt durch die Zeit vom ersten bis zum letzten</translation>
    </message>
    <message>
        <source>first token {0} s</source>
        <translation>erstes Token {0} s</translation>
    </message>
    <message>
        <source>From sending to the first token; {0} of {1} prompt tokens came from the cache</source>
        <translation>Vom Senden bis zum ersten Token; {0} von {1} Tokens des Prompts kamen aus dem Cache</translation>
    </message>
    <message>
        <source>{0} per round</source>
        <translation>{0} je Runde</translation>
    </message>
    <message numerus="yes">
        <source>%Ln token(s)</source>
        <translation>
            <numerusform>%Ln Token</numerusform>
            <numerusform>%Ln Tokens</numerusform>
        </translation>
    </message>
    <message>
        <source>Length of the answer, its end token included</source>
        <translation>Länge der Antwort, mit dem Schluss-Token</translation>
    </message>
    <message>
        <source>Who drafted. The text is the same under each</source>
        <translation>Wer entwarf. Der Text ist bei jedem derselbe</translation>
    </message>
    <message>
        <source>context {0}</source>
        <translation>Kontext {0}</translation>
    </message>
    <message>
        <source>temperature {0}</source>
        <translation>Temperatur {0}</translation>
    </message>
    <message>
        <source>seed {0}</source>
        <translation>Startwert {0}</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>Kopiert</translation>
    </message>
    <message>
        <source>first token {0} s, cached</source>
        <translation>erstes Token {0} s, aus dem Cache</translation>
    </message>
    <message>
        <source>prompt {0} tok/s</source>
        <translation>Prompt {0} Tok/s</translation>
    </message>
    <message>
        <source>Prompt tokens that were computed, not cached, by the time until the first token</source>
        <translation>Tokens des Prompts, die berechnet wurden und nicht aus dem Cache kamen, durch die Zeit bis zum ersten Token</translation>
    </message>
    <message>
        <source>{0} of {1} drafts kept</source>
        <translation>{0} von {1} Entwürfen angenommen</translation>
    </message>
    <message>
        <source>Drafted tokens that became part of the answer, of all that were drafted</source>
        <translation>Entworfene Tokens, die Teil der Antwort wurden, von allen entworfenen</translation>
    </message>
    <message numerus="yes">
        <source>Tokens that each of %Ln pass(es) of the model made; 1.0 is plain decoding</source>
        <translation>
            <numerusform>Tokens, die der eine Durchgang des Modells ergab; 1,0 ist einfaches Rechnen</numerusform>
            <numerusform>Tokens, die jeder von %Ln Durchgängen des Modells ergab; 1,0 ist einfaches Rechnen</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>StatusBar</name>
    <message>
        <source>Engine</source>
        <translation>Engine</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>Clients</source>
        <translation>Clients</translation>
    </message>
    <message>
        <source>Heat</source>
        <translation>Wärme</translation>
    </message>
    <message>
        <source>Server</source>
        <translation>Server</translation>
    </message>
    <message>
        <source>What Slipstream holds now, of what a model may take on this machine</source>
        <translation>Was Slipstream jetzt belegt, von dem, was ein Modell auf diesem Rechner belegen darf</translation>
    </message>
    <message>
        <source>Answers that clients of the server wait for now</source>
        <translation>Antworten, auf die Clients des Servers gerade warten</translation>
    </message>
    <message>
        <source>{0} of {1}</source>
        <translation>{0} von {1}</translation>
    </message>
    <message numerus="yes">
        <source>%n client(s)</source>
        <translation>
            <numerusform>%n Client</numerusform>
            <numerusform>%n Clients</numerusform>
        </translation>
    </message>
    <message>
        <source>Engine ready</source>
        <translation>Engine bereit</translation>
    </message>
    <message>
        <source>Engine generating</source>
        <translation>Engine schreibt</translation>
    </message>
    <message>
        <source>Loading {0}</source>
        <translation>{0} wird geladen</translation>
    </message>
    <message>
        <source>No model is loaded</source>
        <translation>Es ist kein Modell geladen</translation>
    </message>
    <message>
        <source>Serving at {0}</source>
        <translation>Erreichbar unter {0}</translation>
    </message>
    <message>
        <source>Server is starting</source>
        <translation>Server startet</translation>
    </message>
    <message>
        <source>Server could not start</source>
        <translation>Server konnte nicht starten</translation>
    </message>
    <message>
        <source>Server off</source>
        <translation>Server aus</translation>
    </message>
    <message>
        <source>nominal</source>
        <translation>normal</translation>
    </message>
    <message>
        <source>raised</source>
        <translation>erhöht</translation>
    </message>
    <message>
        <source>high</source>
        <translation>hoch</translation>
    </message>
    <message>
        <source>Heat: {0}</source>
        <translation>Wärme: {0}</translation>
    </message>
    <message>
        <source>Engine reading a prompt</source>
        <translation>Engine liest einen Prompt</translation>
    </message>
    <message>
        <source>Engine measuring</source>
        <translation>Engine misst</translation>
    </message>
    <message>
        <source>Engine crashed</source>
        <translation>Engine abgestürzt</translation>
    </message>
    <message numerus="yes">
        <source>%n client(s), paused</source>
        <translation>
            <numerusform>%n Client, pausiert</numerusform>
            <numerusform>%n Clients, pausiert</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Store</name>
    <message>
        <source>{0} (again in {1} s)</source>
        <translation>{0} (nochmals in {1} s)</translation>
    </message>
    <message>
        <source>Made on this machine</source>
        <translation>Auf diesem Rechner gemacht</translation>
    </message>
    <message>
        <source>Made on this machine: {0} tokens per round on held-out text</source>
        <translation>Auf diesem Rechner gemacht: {0} Tokens je Runde bei zurückgehaltenem Text</translation>
    </message>
    <message>
        <source>Source: {0}</source>
        <translation>Quelle: {0}</translation>
    </message>
    <message>
        <source>{0}× against plain decoding ({1})</source>
        <translation>{0}× so schnell wie einfaches Rechnen ({1})</translation>
    </message>
</context>
<context>
    <name>TelemetryDrawer</name>
    <message>
        <source>Telemetry of chats</source>
        <translation>Telemetrie der Chats</translation>
    </message>
    <message>
        <source>Close telemetry</source>
        <translation>Telemetrie schließen</translation>
    </message>
    <message>
        <source>All telemetry</source>
        <translation>Ganze Telemetrie</translation>
    </message>
    <message>
        <source>No round yet.</source>
        <translation>Noch keine Runde.</translation>
    </message>
    <message>
        <source>Plain decoding: nothing is drafted.</source>
        <translation>Einfaches Rechnen: Nichts wird entworfen.</translation>
    </message>
</context>
<context>
    <name>TelemetryScreen</name>
    <message>
        <source>Period</source>
        <translation>Zeitraum</translation>
    </message>
    <message>
        <source>Now</source>
        <translation>Jetzt</translation>
    </message>
    <message>
        <source>Session</source>
        <translation>Sitzung</translation>
    </message>
    <message>
        <source>History</source>
        <translation>Verlauf</translation>
    </message>
    <message>
        <source>Source</source>
        <translation>Quelle</translation>
    </message>
    <message>
        <source>All sources</source>
        <translation>Alle Quellen</translation>
    </message>
    <message>
        <source>Freeze</source>
        <translation>Einfrieren</translation>
    </message>
    <message>
        <source>Export CSV…</source>
        <translation>CSV exportieren …</translation>
    </message>
    <message>
        <source>Telemetry</source>
        <translation>Telemetrie</translation>
    </message>
    <message>
        <source>Reading {0} of {1} prompt tokens</source>
        <translation>Liest {0} von {1} Tokens des Prompts</translation>
    </message>
    <message numerus="yes">
        <source>%n request(s) under way</source>
        <translation>
            <numerusform>%n Anfrage läuft</numerusform>
            <numerusform>%n Anfragen laufen</numerusform>
        </translation>
    </message>
    <message>
        <source>Nothing was generated yet. Ask something in Chat, or run a Race.</source>
        <translation>Noch wurde nichts erzeugt. Frage etwas im Chat, oder starte ein Rennen.</translation>
    </message>
    <message>
        <source>Idle since {0}. These are the last figures.</source>
        <translation>Ruhig seit {0}. Das sind die letzten Zahlen.</translation>
    </message>
    <message>
        <source>No round yet.</source>
        <translation>Noch keine Runde.</translation>
    </message>
    <message>
        <source>Plain decoding: nothing is drafted.</source>
        <translation>Einfaches Rechnen: Nichts wird entworfen.</translation>
    </message>
    <message>
        <source>Go on</source>
        <translation>Weiter</translation>
    </message>
    <message>
        <source>Frozen at {0}</source>
        <translation>Eingefroren um {0}</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>Exportieren</translation>
    </message>
    <message>
        <source>CSV (*.csv)</source>
        <translation>CSV (*.csv)</translation>
    </message>
</context>
<context>
    <name>ThinkingCard</name>
    <message>
        <source>Thoughts</source>
        <translation>Gedanken</translation>
    </message>
    <message>
        <source>Thinking… {0} s</source>
        <translation>Denkt nach … {0} s</translation>
    </message>
    <message numerus="yes">
        <source>Thought for {0} s (%Ln token(s))</source>
        <translation>
            <numerusform>{0} s nachgedacht (%Ln Token)</numerusform>
            <numerusform>{0} s nachgedacht (%Ln Tokens)</numerusform>
        </translation>
    </message>
    <message>
        <source>Hide thoughts</source>
        <translation>Gedanken verbergen</translation>
    </message>
    <message>
        <source>Show thoughts</source>
        <translation>Gedanken zeigen</translation>
    </message>
</context>
<context>
    <name>ToolCard</name>
    <message>
        <source>What the tool gave. Nothing was run.</source>
        <translation>Was das Werkzeug ergab. Nichts wurde ausgeführt.</translation>
    </message>
    <message>
        <source>Result of the tool call</source>
        <translation>Ergebnis des Werkzeugaufrufs</translation>
    </message>
    <message>
        <source>Add result</source>
        <translation>Ergebnis hinzufügen</translation>
    </message>
    <message>
        <source>Call of {0}</source>
        <translation>Aufruf von {0}</translation>
    </message>
    <message>
        <source>being written</source>
        <translation>wird geschrieben</translation>
    </message>
    <message>
        <source>answered</source>
        <translation>beantwortet</translation>
    </message>
    <message>
        <source>not run</source>
        <translation>nicht ausgeführt</translation>
    </message>
    <message>
        <source>Result: {0}</source>
        <translation>Ergebnis: {0}</translation>
    </message>
</context>
<context>
    <name>Toolbar</name>
    <message>
        <source>Stop</source>
        <translation>Anhalten</translation>
    </message>
    <message>
        <source>Stop what is being written</source>
        <translation>Anhalten, was gerade geschrieben wird</translation>
    </message>
    <message>
        <source>Command palette</source>
        <translation>Befehlspalette</translation>
    </message>
    <message>
        <source>Command palette  {0}</source>
        <translation>Befehlspalette  {0}</translation>
    </message>
    <message>
        <source>Loaded: {0}</source>
        <translation>Geladen: {0}</translation>
    </message>
    <message>
        <source>{0} tokens of context</source>
        <translation>{0} Tokens Kontext</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Cancel loading</source>
        <translation>Laden abbrechen</translation>
    </message>
</context>
<context>
    <name>TrainingCard</name>
    <message>
        <source>A drafter for {0}</source>
        <translation>Ein Entwurfsmodell für {0}</translation>
    </message>
    <message>
        <source>Load</source>
        <translation>Laden</translation>
    </message>
    <message>
        <source>Load {0} with its new drafter</source>
        <translation>{0} mit dem neuen Entwurfsmodell laden</translation>
    </message>
    <message>
        <source>Make it anyway</source>
        <translation>Trotzdem machen</translation>
    </message>
    <message>
        <source>Cancel the drafter for {0}</source>
        <translation>Das Entwurfsmodell für {0} abbrechen</translation>
    </message>
    <message>
        <source>How far it is</source>
        <translation>Wie weit es ist</translation>
    </message>
    <message>
        <source>tokens written</source>
        <translation>geschriebene Tokens</translation>
    </message>
    <message>
        <source>step</source>
        <translation>Schritt</translation>
    </message>
    <message>
        <source>loss</source>
        <translation>Verlust</translation>
    </message>
    <message>
        <source>tokens per round</source>
        <translation>Tokens je Runde</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>Pause</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>Noch einmal</translation>
    </message>
    <message>
        <source>Continue</source>
        <translation>Weiter</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Cancel…</source>
        <translation>Abbrechen …</translation>
    </message>
    <message>
        <source>The drafter learns: {0} done.</source>
        <translation>Das Entwurfsmodell lernt: {0} fertig.</translation>
    </message>
    <message>
        <source>The model writes conversations: part {0} of {1} is done.</source>
        <translation>Das Modell schreibt Gespräche: Teil {0} von {1} ist fertig.</translation>
    </message>
    <message>
        <source>The conversations are written. Training begins.</source>
        <translation>Die Gespräche sind geschrieben. Das Training beginnt.</translation>
    </message>
    <message>
        <source>It is judged by conversations that it has not seen.</source>
        <translation>Es wird an Gesprächen gemessen, die es nicht gesehen hat.</translation>
    </message>
    <message>
        <source>Not running. Continue goes on from the last step that was saved.</source>
        <translation>Läuft nicht. Weiter macht beim letzten gespeicherten Schritt weiter.</translation>
    </message>
    <message>
        <source>Not made: {0}.</source>
        <translation>Nicht gemacht: {0}.</translation>
    </message>
    <message>
        <source>It failed: {0}</source>
        <translation>Fehlgeschlagen: {0}</translation>
    </message>
    <message>
        <source>Done: {0} tokens per round on conversations that it has not seen. It is listed under On this machine. Race it to see what it gains.</source>
        <translation>Fertig: {0} Tokens je Runde in Gesprächen, die es nicht gesehen hat. Es steht unter „Auf diesem Rechner“. Ein Rennen zeigt, was es bringt.</translation>
    </message>
    <message>
        <source>The model is loaded, then writes its first conversations.</source>
        <translation>Das Modell wird geladen und schreibt dann seine ersten Gespräche.</translation>
    </message>
    <message>
        <source>Really delete</source>
        <translation>Wirklich löschen</translation>
    </message>
    <message>
        <source>It ends after this step, and can be continued from there.</source>
        <translation>Es endet nach diesem Schritt und lässt sich von dort fortsetzen.</translation>
    </message>
    <message>
        <source>It begins when the one that is being made has ended its step.</source>
        <translation>Es beginnt, wenn das, das gerade entsteht, seinen Schritt beendet hat.</translation>
    </message>
    <message>
        <source>Pauses after this part, and goes on from there; the model stays in memory.</source>
        <translation>Pausiert nach diesem Teil und geht von dort weiter; das Modell bleibt im Speicher.</translation>
    </message>
    <message>
        <source>Paused. Continue goes on from here; the model stays in memory.</source>
        <translation>Pausiert. Weiter geht es von hier; das Modell bleibt im Speicher.</translation>
    </message>
    <message numerus="yes">
        <source>The drafter stays. The conversations are deleted: %n file(s) ({0}) in {1}.</source>
        <translation>
            <numerusform>Das Entwurfsmodell bleibt. Die Gespräche werden gelöscht: eine Datei ({0}) in {1}.</numerusform>
            <numerusform>Das Entwurfsmodell bleibt. Die Gespräche werden gelöscht: %n Dateien ({0}) in {1}.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>What it has learned so far is deleted, with the conversations: %n file(s) ({0}) in {1}.</source>
        <translation>
            <numerusform>Was es bisher gelernt hat, wird gelöscht, mit den Gesprächen: eine Datei ({0}) in {1}.</numerusform>
            <numerusform>Was es bisher gelernt hat, wird gelöscht, mit den Gesprächen: %n Dateien ({0}) in {1}.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>TrainingOffer</name>
    <message>
        <source>Make a drafter for {0}</source>
        <translation>Ein Entwurfsmodell für {0} machen</translation>
    </message>
    <message>
        <source>The model writes conversations, and a small network learns from them to guess what it says next. Nothing leaves this machine, and the model&apos;s answers stay the same.</source>
        <translation>Das Modell schreibt Gespräche, und ein kleines Netz lernt daraus zu erraten, was es als Nächstes sagt. Nichts verlässt diesen Rechner, und die Antworten des Modells bleiben dieselben.</translation>
    </message>
    <message>
        <source>How thorough</source>
        <translation>Wie gründlich</translation>
    </message>
    <message>
        <source>Short</source>
        <translation>Kurz</translation>
    </message>
    <message>
        <source>Usual</source>
        <translation>Üblich</translation>
    </message>
    <message>
        <source>Thorough</source>
        <translation>Gründlich</translation>
    </message>
    <message>
        <source>{0}: {1} conversations</source>
        <translation>{0}: {1} Gespräche</translation>
    </message>
    <message>
        <source>time, about</source>
        <translation>Zeit, etwa</translation>
    </message>
    <message>
        <source>energy, about</source>
        <translation>Energie, etwa</translation>
    </message>
    <message>
        <source>tokens per round</source>
        <translation>Tokens je Runde</translation>
    </message>
    <message>
        <source>of plain decoding&apos;s speed</source>
        <translation>des Tempos einfachen Rechnens</translation>
    </message>
    <message>
        <source>Working out what it would take…</source>
        <translation>Es wird ausgerechnet, was es braucht …</translation>
    </message>
    <message>
        <source>Start</source>
        <translation>Starten</translation>
    </message>
    <message>
        <source>Start making the drafter</source>
        <translation>Das Entwurfsmodell machen</translation>
    </message>
    <message>
        <source>Make it anyway</source>
        <translation>Trotzdem machen</translation>
    </message>
    <message>
        <source>Not now</source>
        <translation>Nicht jetzt</translation>
    </message>
    <message>
        <source>Worked out from what was measured with this model here.</source>
        <translation>Ausgerechnet aus dem, was hier mit diesem Modell gemessen wurde.</translation>
    </message>
    <message>
        <source>An estimate by this machine&apos;s kind; a loaded model that was calibrated is judged better.</source>
        <translation>Eine Schätzung nach der Art dieses Rechners; genauer ist sie für ein geladenes, kalibriertes Modell.</translation>
    </message>
    <message>
        <source>{0} of writing, then {1} of training; it can be paused.</source>
        <translation>{0} Schreiben, dann {1} Training; es lässt sich pausieren.</translation>
    </message>
    <message>
        <source>It would make this model {0} times as fast: {1}. n-gram lookup costs nothing.</source>
        <translation>Das Modell würde {0}-mal so schnell: {1}. Nachschlagen (N-Gramme) kostet nichts.</translation>
    </message>
    <message>
        <source>The drafter that is being made ends after its step, and can be continued later.</source>
        <translation>Das Entwurfsmodell, das gerade entsteht, endet nach seinem Schritt und lässt sich später fortsetzen.</translation>
    </message>
    <message>
        <source>What the earlier one wrote on the way is deleted ({0}); a finished drafter stays.</source>
        <translation>Was das frühere unterwegs geschrieben hat, wird gelöscht ({0}); ein fertiges Entwurfsmodell bleibt.</translation>
    </message>
    <message>
        <source>It cannot be made here: the model unpacked alone takes {0}, and a model may take {1}.</source>
        <translation>Es lässt sich hier nicht machen: Schon das entpackte Modell braucht {0}, und ein Modell darf {1} belegen.</translation>
    </message>
    <message>
        <source>Training loads the model once more, unpacked: at least {0} beside {1} here, of {2}.</source>
        <translation>Das Training lädt das Modell noch einmal, entpackt: mindestens {0} neben den {1} hier, von {2}.</translation>
    </message>
    <message>
        <source>Unload the chat&apos;s model first.</source>
        <translation>Entlade zuerst das Modell des Chats.</translation>
    </message>
</context>
<context>
    <name>TrainingPage</name>
    <message>
        <source>No drafter is being made. Choose a model under On this machine, then Make a drafter.</source>
        <translation>Es wird kein Entwurfsmodell gemacht. Wähle unter „Auf diesem Rechner“ ein Modell, dann „Entwurfsmodell machen“.</translation>
    </message>
    <message>
        <source>Drafters in the making</source>
        <translation>Entwurfsmodelle, die gerade entstehen</translation>
    </message>
</context>
<context>
    <name>Transcript</name>
    <message>
        <source>Messages</source>
        <translation>Nachrichten</translation>
    </message>
    <message>
        <source>↓ Jump to latest</source>
        <translation>↓ Zum Neuesten</translation>
    </message>
</context>
<context>
    <name>Tray</name>
    <message>
        <source>Pair</source>
        <translation>Paar</translation>
    </message>
    <message>
        <source>Unload</source>
        <translation>Entladen</translation>
    </message>
    <message>
        <source>Stop server</source>
        <translation>Server anhalten</translation>
    </message>
    <message>
        <source>Start server</source>
        <translation>Server starten</translation>
    </message>
    <message>
        <source>Copy base URL</source>
        <translation>Basis-URL kopieren</translation>
    </message>
    <message>
        <source>Open Slipstream</source>
        <translation>Slipstream öffnen</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>Beenden</translation>
    </message>
</context>
<context>
    <name>UpdatesPage</name>
    <message>
        <source>Open its page</source>
        <translation>Seite öffnen</translation>
    </message>
    <message>
        <source>What changed</source>
        <translation>Was sich geändert hat</translation>
    </message>
    <message>
        <source>This is Slipstream {0}.</source>
        <translation>Dies ist Slipstream {0}.</translation>
    </message>
    <message>
        <source>Looking…</source>
        <translation>Wird gesucht …</translation>
    </message>
    <message>
        <source>Slipstream {0} is out. {1}</source>
        <translation>Slipstream {0} ist erschienen. {1}</translation>
    </message>
    <message>
        <source>{0} There was nothing newer on {1}.</source>
        <translation>{0} Am {1} gab es nichts Neueres.</translation>
    </message>
    <message>
        <source>What is new in {0}</source>
        <translation>Neu in {0}</translation>
    </message>
    <message>
        <source>Check now</source>
        <translation>Jetzt prüfen</translation>
    </message>
    <message>
        <source>It is a pre-release.</source>
        <translation>Es ist eine Vorabversion.</translation>
    </message>
</context>
<context>
    <name>Walker</name>
    <message>
        <source>Previous branch</source>
        <translation>Voriger Zweig</translation>
    </message>
    <message>
        <source>Next branch</source>
        <translation>Nächster Zweig</translation>
    </message>
    <message>
        <source>Branch {0} of {1}</source>
        <translation>Zweig {0} von {1}</translation>
    </message>
</context>
<context>
    <name>WhySpeed</name>
    <message>
        <source>This answer&apos;s tokens were not kept, so its speed cannot be explained.</source>
        <translation>Die Tokens dieser Antwort wurden nicht aufgehoben, daher lässt sich ihr Tempo nicht erklären.</translation>
    </message>
    <message>
        <source>Load the model to see the tokens of this answer.</source>
        <translation>Lade das Modell, um die Tokens dieser Antwort zu sehen.</translation>
    </message>
</context>
<context>
    <name>_Row</name>
    <message>
        <source>changed</source>
        <translation>geändert</translation>
    </message>
    <message>
        <source>Reset {0}</source>
        <translation>{0} zurücksetzen</translation>
    </message>
    <message>
        <source>Reset</source>
        <translation>Zurücksetzen</translation>
    </message>
</context>
<context>
    <name>_Rows</name>
    <message>
        <source>{0}, {1} new</source>
        <translation>{0}, {1} neu</translation>
    </message>
</context>
</TS>
