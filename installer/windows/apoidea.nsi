; The Windows installer: for one user, without administrator rights. Made by installer/windows/package.
; Options: /S silent, /AUTOSTART=1 start at login (0: do not), /SCREENSAVER=1 use our screensaver, /R start the app afterwards, /D=FOLDER;
; for the uninstaller: /S silent, which keeps the data unless /DATA=remove.

Unicode true
Target amd64-unicode
!include "MUI2.nsh"
!include "FileFunc.nsh"
!include "LogicLib.nsh"
!include "WinVer.nsh"
!include "x64.nsh"

!define NAME "Apoidea"
!define UNINSTALL "Software\Microsoft\Windows\CurrentVersion\Uninstall\${NAME}"
!define RUN "Software\Microsoft\Windows\CurrentVersion\Run"
; What the Task Manager says about that list; Windows and "Start at login" write it.
!define RUN_APPROVED "Software\Microsoft\Windows\CurrentVersion\Explorer\StartupApproved\Run"
; Who our notifications are from. Windows shows none of a program that it knows no name for.
!define NOTIFIER "Software\Classes\AppUserModelId\org.apoidea.desktop"
; Links that begin with apoidea: are invites.
!define SCHEME "Software\Classes\apoidea"
!define WEBVIEW "SOFTWARE\Microsoft\EdgeUpdate\Clients\{F3017226-FE2A-4295-8BDF-00C3A9A7E4C5}"
; Where the programs keep what a peer remembers and its settings, by the conventions of this system.
!define DATA "$LOCALAPPDATA\apoidea"
!define SETTINGS "$APPDATA\apoidea"
!define CACHE "$LOCALAPPDATA\org.apoidea.desktop"

Name "${NAME}"
OutFile "${OUT}"
!uninstfinalize '"${TOP}/installer/windows/sign" "%1"' = 0
InstallDir "$LOCALAPPDATA\Programs\${NAME}"
InstallDirRegKey HKCU "${UNINSTALL}" "InstallLocation"
RequestExecutionLevel user
SetCompressor /SOLID lzma
SetCompressorDictSize 64
ManifestDPIAware true

VIProductVersion "${VERSION}.0"
VIAddVersionKey "ProductName" "${NAME}"
VIAddVersionKey "ProductVersion" "${VERSION}"
VIAddVersionKey "FileVersion" "${VERSION}"
VIAddVersionKey "FileDescription" "${NAME} installer"
VIAddVersionKey "LegalCopyright" "The Apoidea developers"

!define MUI_ICON "${TOP}/src-tauri/icons/icon.ico"
!define MUI_UNICON "${TOP}/src-tauri/icons/icon.ico"
!define MUI_ABORTWARNING
!define MUI_FINISHPAGE_RUN "$INSTDIR\apoidea-desktop.exe"
!insertmacro MUI_PAGE_WELCOME
!insertmacro MUI_PAGE_LICENSE "${TOP}/LICENSE-MIT"
!insertmacro MUI_PAGE_COMPONENTS
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"

; Ends the programs that run from our folder: a peer recovers from that as from any crash, and loses nothing.
; The folder travels in the environment, since the name of a user may hold any character that a script gives a meaning.
!macro EndPrograms
    System::Call 'kernel32::SetEnvironmentVariable(t "APOIDEA_FOLDER", t "$INSTDIR")'
    nsExec::Exec `powershell -NoProfile -NonInteractive -Command "Get-Process apoidea,apoidea-desktop,Apoidea.scr -ErrorAction SilentlyContinue | Where-Object { $$_.Path -and (Split-Path -LiteralPath $$_.Path) -eq $$env:APOIDEA_FOLDER } | Stop-Process -Force -PassThru | Wait-Process -Timeout 10"`
    Pop $0
!macroend

Section "${NAME}" SectionPrograms
    SectionIn RO
    !insertmacro EndPrograms
    SetOutPath "$INSTDIR"
    File "${FILES}/apoidea.exe"
    File "${FILES}/apoidea-desktop.exe"
    File "${FILES}/WebView2Loader.dll"
    File "${FILES}/third-party-licences.txt"
    File "/oname=LICENSE-MIT.txt" "${TOP}/LICENSE-MIT"
    File "/oname=LICENSE-APACHE.txt" "${TOP}/LICENSE-APACHE"

    ; A screensaver is the same program under another name. A second name for the file takes no space; where the disk has none, a copy does.
    Delete "$INSTDIR\Apoidea.scr"
    System::Call 'kernel32::CreateHardLinkW(w "$INSTDIR\Apoidea.scr", w "$INSTDIR\apoidea-desktop.exe", p 0) i .r0'
    ${If} $0 == 0
        CopyFiles /SILENT "$INSTDIR\apoidea-desktop.exe" "$INSTDIR\Apoidea.scr"
    ${EndIf}

    CreateDirectory "$SMPROGRAMS\${NAME}"
    CreateShortcut "$SMPROGRAMS\${NAME}\${NAME}.lnk" "$INSTDIR\apoidea-desktop.exe"
    CreateShortcut "$SMPROGRAMS\${NAME}\Uninstall ${NAME}.lnk" "$INSTDIR\uninstall.exe"

    WriteUninstaller "$INSTDIR\uninstall.exe"
    WriteRegStr HKCU "${UNINSTALL}" "DisplayName" "${NAME}"
    WriteRegStr HKCU "${UNINSTALL}" "DisplayVersion" "${VERSION}"
    WriteRegStr HKCU "${UNINSTALL}" "DisplayIcon" "$INSTDIR\apoidea-desktop.exe"
    WriteRegStr HKCU "${UNINSTALL}" "Publisher" "The Apoidea developers"
    WriteRegStr HKCU "${UNINSTALL}" "URLInfoAbout" "https://github.com/apoidea-crawler/apoidea"
    WriteRegStr HKCU "${UNINSTALL}" "InstallLocation" "$INSTDIR"
    WriteRegStr HKCU "${UNINSTALL}" "UninstallString" '"$INSTDIR\uninstall.exe"'
    WriteRegStr HKCU "${UNINSTALL}" "QuietUninstallString" '"$INSTDIR\uninstall.exe" /S'
    WriteRegDWORD HKCU "${UNINSTALL}" "NoModify" 1
    WriteRegDWORD HKCU "${UNINSTALL}" "NoRepair" 1
    ${GetSize} "$INSTDIR" "/S=0K" $0 $1 $2
    IntFmt $0 "0x%08X" $0
    WriteRegDWORD HKCU "${UNINSTALL}" "EstimatedSize" $0
    WriteRegStr HKCU "${NOTIFIER}" "DisplayName" "${NAME}"
    WriteRegStr HKCU "${SCHEME}" "" "URL:Apoidea invite"
    WriteRegStr HKCU "${SCHEME}" "URL Protocol" ""
    WriteRegStr HKCU "${SCHEME}\DefaultIcon" "" "$INSTDIR\apoidea-desktop.exe"
    WriteRegStr HKCU "${SCHEME}\shell\open\command" "" '"$INSTDIR\apoidea-desktop.exe" "%1"'

    ; Others reach this peer more easily with a rule in the firewall, which only an administrator may add.
    UserInfo::GetAccountType
    Pop $0
    ${If} $0 == "Admin"
        nsExec::Exec 'netsh advfirewall firewall delete rule name="${NAME}"'
        Pop $0
        nsExec::Exec 'netsh advfirewall firewall add rule name="${NAME}" dir=in action=allow protocol=UDP program="$INSTDIR\apoidea-desktop.exe" enable=yes'
        Pop $0
        nsExec::Exec 'netsh advfirewall firewall add rule name="${NAME}" dir=in action=allow protocol=UDP program="$INSTDIR\apoidea.exe" enable=yes'
        Pop $0
    ${EndIf}
SectionEnd

; The same value that "Start at login" in the tray's menu writes.
Section /o "Start at login" SectionAutostart
    WriteRegStr HKCU "${RUN}" "${NAME}" '"$INSTDIR\apoidea-desktop.exe" --hidden'
SectionEnd

Section /o "Use our screensaver" SectionScreensaver
    WriteRegStr HKCU "Control Panel\Desktop" "SCRNSAVE.EXE" "$INSTDIR\Apoidea.scr"
    WriteRegStr HKCU "Control Panel\Desktop" "ScreenSaveActive" "1"
SectionEnd

; What is not chosen any more.
Section -Unchosen
    ${IfNot} ${SectionIsSelected} ${SectionAutostart}
        DeleteRegValue HKCU "${RUN}" "${NAME}"
        DeleteRegValue HKCU "${RUN_APPROVED}" "${NAME}"
    ${EndIf}
SectionEnd

LangString ABOUT_PROGRAMS ${LANG_ENGLISH} "The tray app, the command line, and the screensaver."
LangString ABOUT_AUTOSTART ${LANG_ENGLISH} "Begin with the session, in the tray. It can be changed there at any time."
LangString ABOUT_SCREENSAVER ${LANG_ENGLISH} "Show the crawl while nobody is at the computer."
!insertmacro MUI_FUNCTION_DESCRIPTION_BEGIN
!insertmacro MUI_DESCRIPTION_TEXT ${SectionPrograms} $(ABOUT_PROGRAMS)
!insertmacro MUI_DESCRIPTION_TEXT ${SectionAutostart} $(ABOUT_AUTOSTART)
!insertmacro MUI_DESCRIPTION_TEXT ${SectionScreensaver} $(ABOUT_SCREENSAVER)
!insertmacro MUI_FUNCTION_DESCRIPTION_END

Function .onInit
    ${IfNot} ${RunningX64}
        MessageBox MB_ICONSTOP "Apoidea needs a 64-bit Windows." /SD IDOK
        SetErrorLevel 2
        Abort
    ${EndIf}
    ; An upgrade leaves the choices as they are, unless told otherwise.
    ReadRegStr $R1 HKCU "${RUN}" "${NAME}"
    ${If} $R1 != ""
        !insertmacro SelectSection ${SectionAutostart}
    ${EndIf}
    ${GetParameters} $R0
    ClearErrors
    ${GetOptions} $R0 "/AUTOSTART=" $R1
    ${If} $R1 == "1"
        !insertmacro SelectSection ${SectionAutostart}
    ${ElseIf} $R1 == "0"
        !insertmacro UnselectSection ${SectionAutostart}
    ${EndIf}
    ClearErrors
    ${GetOptions} $R0 "/SCREENSAVER=" $R1
    ${If} $R1 == "1"
        !insertmacro SelectSection ${SectionScreensaver}
    ${EndIf}
FunctionEnd

; Windows 11 has the web view that shows the dashboard; an older Windows may lack it.
Function .onInstSuccess
    ReadRegStr $R1 HKLM "SOFTWARE\WOW6432Node\Microsoft\EdgeUpdate\Clients\{F3017226-FE2A-4295-8BDF-00C3A9A7E4C5}" "pv"
    ${If} $R1 == ""
        ReadRegStr $R1 HKCU "${WEBVIEW}" "pv"
    ${EndIf}
    ${If} $R1 == ""
    ${OrIf} $R1 == "0.0.0.0"
        MessageBox MB_YESNO|MB_ICONINFORMATION "The window of Apoidea needs Microsoft's WebView2, which this computer does not have yet. Without it Apoidea works as well, but shows its dashboard in your browser, and has no screensaver.$\r$\n$\r$\nOpen Microsoft's download page?" /SD IDNO IDNO later
        ExecShell "open" "https://developer.microsoft.com/microsoft-edge/webview2/#download"
        later:
    ${EndIf}
    ; The updater starts us silently and wants the app back.
    ${GetParameters} $R0
    ClearErrors
    ${GetOptions} $R0 "/R" $R1
    ${IfNot} ${Errors}
    ${AndIf} ${Silent}
        Exec '"$INSTDIR\apoidea-desktop.exe" --hidden'
    ${EndIf}
FunctionEnd

Section "Uninstall"
    !insertmacro EndPrograms
    ; Exactly what was installed: a folder that somebody put more into stays.
    Delete "$INSTDIR\apoidea.exe"
    Delete "$INSTDIR\apoidea-desktop.exe"
    Delete "$INSTDIR\Apoidea.scr"
    Delete "$INSTDIR\WebView2Loader.dll"
    Delete "$INSTDIR\third-party-licences.txt"
    Delete "$INSTDIR\LICENSE-MIT.txt"
    Delete "$INSTDIR\LICENSE-APACHE.txt"
    Delete "$INSTDIR\uninstall.exe"
    RMDir "$INSTDIR"
    Delete "$SMPROGRAMS\${NAME}\${NAME}.lnk"
    Delete "$SMPROGRAMS\${NAME}\Uninstall ${NAME}.lnk"
    RMDir "$SMPROGRAMS\${NAME}"
    ; What the web view has put aside.
    RMDir /r "${CACHE}"
    ReadRegStr $R1 HKCU "Control Panel\Desktop" "SCRNSAVE.EXE"
    ${If} $R1 == "$INSTDIR\Apoidea.scr"
        DeleteRegValue HKCU "Control Panel\Desktop" "SCRNSAVE.EXE"
    ${EndIf}
    DeleteRegValue HKCU "${RUN}" "${NAME}"
    DeleteRegValue HKCU "${RUN_APPROVED}" "${NAME}"
    DeleteRegKey HKCU "${NOTIFIER}"
    DeleteRegKey HKCU "${SCHEME}"
    DeleteRegKey HKCU "${UNINSTALL}"
    UserInfo::GetAccountType
    Pop $0
    ${If} $0 == "Admin"
        nsExec::Exec 'netsh advfirewall firewall delete rule name="${NAME}"'
        Pop $0
    ${EndIf}

    ${GetParameters} $R0
    ClearErrors
    ${GetOptions} $R0 "/DATA=" $R1
    ${If} $R1 == "remove"
        Goto remove
    ${EndIf}
    IfFileExists "${DATA}\*.*" 0 keep
    MessageBox MB_YESNO|MB_ICONQUESTION|MB_DEFBUTTON2 "Also remove what Apoidea has crawled and its settings?$\r$\n$\r$\n${DATA}" /SD IDNO IDNO keep
    remove:
    RMDir /r "${DATA}"
    RMDir /r "${SETTINGS}"
    keep:
SectionEnd
